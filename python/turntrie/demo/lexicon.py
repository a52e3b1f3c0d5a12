"""The words that the demo's texts are made of.

Plain lists, each of one kind, so that `writer` can compose identifiers, prose, code and logs from them. The list of
scripts is there for the tokenizer's sake: text that normalizes, joins, or has no blanks between words.
"""

NOUNS = tuple(
    """
    account action address agent alias anchor archive argument array artifact asset attempt audit backend backup
    balance batch bench binding block body boundary branch budget buffer build bundle cache call capacity catalog cell
    chain channel chart check chunk client clock cluster codec column command commit config connection console
    container content context contract cookie counter cursor cycle daemon dataset deadline default delta dependency
    descriptor device diff digest directory document domain draft driver edge editor element encoder endpoint engine
    entry envelope epoch error event example exception export factory failure feature feed field file filter fixture
    flag folder format frame function gateway generator graph group handle handler hash header heap history hook host
    image import index inline input instance interval invoice issue item iterator job journal kernel key label layer
    ledger length level library limit line link list loader lock log loop machine manager manifest marker mask matrix
    measure member memory merge message metric migration mirror mode model module monitor name namespace network node
    notice number object offset option order origin output owner package packet page parser partition patch path
    pattern payload period permission pipeline plan platform plugin point policy pool port position prefix process
    product profile progress project prompt property provider proxy query queue quota range rate reader record
    reference region registry release replica report request resource response result retry revision role root route
    router row rule runner sample scanner schedule schema scope score script search section segment selector sequence
    server service session setting shape shard signal signature size slice slot snapshot socket source span stage
    state statement status storage store stream string struct suffix summary switch symbol table tag target task
    template tenant test text thread threshold ticket time timeout timer title token total trace transaction transfer
    transport tree trigger type unit update upload usage user value variable vector vendor version view visitor volume
    warning watcher weight widget window worker wrapper writer zone
    """.split()
)

VERBS = tuple(
    """
    accept acquire add align allocate append apply assert assign attach bind build cache cancel check clean clear
    clone close collect commit compare compile compute connect convert copy count create decode delete deliver derive
    detach detect disable discard dispatch drain drop emit enable encode enqueue ensure evict execute expand expire
    export extend extract fetch filter finalize find flatten flush format forward freeze generate group handle hash
    ignore import infer insert inspect invoke join keep label link list load lock log lookup map mark match merge
    migrate move normalize notify open order pack parse patch pause persist poll prepare process publish pull purge
    push query raise read rebuild receive record reduce refresh register release reload remove rename render replace
    report request reset resolve restart restore resume retry return reuse revert rewrite route run save scan schedule
    select send serialize set shift skip snapshot sort split start stop store submit swap sync throttle trace track
    transform trim unlock update upload validate verify visit wait walk warn wrap write
    """.split()
)

ADJECTIVES = tuple(
    """
    active atomic bad big binary blank broken busy cached clean closed cold compact complete concurrent consistent
    corrupt current damaged dead deep default dirty duplicate early empty exact expired explicit external fast final
    first fixed foreign free fresh full global hidden hot idle implicit incomplete inner internal invalid large last
    late lazy legacy local locked long lost main max merged min missing mutable nested new next nullable obsolete odd
    old open optional outer parallel partial pending plain previous primary private public quick random raw ready
    recent recursive redundant remote required safe secondary serial shared short silent simple slow small sorted
    stable stale static strict stuck temporary total trailing unique unknown unsafe unused upper valid visible volatile
    weak wide wrong
    """.split()
)

CONNECTIVES = tuple(
    """
    although and as because before but but if once since so so that then therefore unless until when whenever where
    whereas while yet
    """.split()
)

LANGUAGES = ("python", "rust", "typescript", "sql", "yaml", "json")

# Text in other scripts: no blanks, right to left, combining marks, joined emoji, compatibility forms, odd blanks.
SCRIPTS = (
    "缓存在并发写入时返回了过期的结果，需要在提交之前重新校验索引。",
    "日志显示第三次重试之后连接被远端关闭。",
    "测试通过了，但是覆盖率下降了百分之二。",
    "設定ファイルの読み込みに失敗しました。パスを確認してください。",
    "このテストは並列実行すると時々失敗します。",
    "トークンの境界が正規化のあとでずれています。",
    "요청이 시간 초과로 실패했습니다. 다시 시도해 주세요.",
    "인덱스가 비어 있으면 기본값을 반환합니다.",
    "Ошибка: соединение закрыто до получения ответа.",
    "Проверка схемы завершена, расхождений не найдено.",
    "Η ρύθμιση δεν βρέθηκε· χρησιμοποιείται η προεπιλογή.",
    "انتهت مهلة الاتصال قبل استلام الرد.",
    "הבדיקה נכשלה: הערך שונה מהצפוי.",
    "अनुक्रमणिका अमान्य है, पुनः निर्माण आवश्यक है।",
    "การเชื่อมต่อหมดเวลา กรุณาลองใหม่อีกครั้ง",
    "Überprüfung der Größe: 3 Einträge außerhalb des gültigen Bereichs.",
    "L\u2019entrée « café » a été normalisée en « cafe\u0301 ».",
    "Łącznie 12 błędów, z czego 3 są krytyczne.",
    "e\u0301a\u0300o\u0302u\u0308n\u0303 \u1e9b\u0323 \ufb01\ufb02 \u2460\u2461\u2462 \uff21\uff22\uff23",
    "\U0001f680 deployed, \U0001f9ea green, \U0001f41b two left \U0001f469\u200d\U0001f4bb\U0001f44d\U0001f3fd",
    "\U0001f1ef\U0001f1f5 \U0001f1e9\U0001f1ea \U0001f3f3\ufe0f\u200d\U0001f308 \u2764\ufe0f 1\ufe0f\u20e3",
    "\u2713 12 passed\u2003\u2717 1 failed\u00a0\u2014 \u2248 4,5\u202fs",
    "\u250c\u2500\u2500\u252c\u2500\u2500\u2510\n\u2502ok\u2502no\u2502\n\u2514\u2500\u2500\u2534\u2500\u2500\u2518",
)
