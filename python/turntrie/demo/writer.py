"""Invents texts as a coding agent meets them: prose, code, diffs, logs, listings, search results.

The texts mean nothing. They have the statistics that matter to a tokenizer: identifiers in several cases, deep
indentation, long lines, numbers, hexadecimal, punctuation runs, other scripts.

Everything follows from one seed, on every Python version: the only source of chance is `random.Random.random()`, whose
sequence the language guarantees, never `choice` or `shuffle`, whose algorithms have changed. Lines are written as
patterns, in which `<name>`, `<path>`, `<1-99>` and the like stand for something invented; `Writer.fill` lists them.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from turntrie.demo.lexicon import ADJECTIVES, CONNECTIVES, NOUNS, SCRIPTS, VERBS

T = TypeVar("T")

_CONSONANTS = "bcdfghklmnprstvwz"
_VOWELS = "aeiou"
_DEEPEST = 5
_KINDS = "name|type|word|path|clause|sentence|value"
_BLANK = re.compile(rf"<(?:(?P<kind>{_KINDS})|(?P<low>\d+)-(?P<high>\d+)|x(?P<digits>\d+))>")

_VALUES = (
    "self.<name>(<name>, <name>=<0-4096>)",
    '<name>.get("<name>", None)',
    '<name>.get("<name>", [])',
    "[<name> for <name> in <name> if <name> is not None]",
    'f"{<name>}/{<name>:><2-12>}"',
    "<name>[<0-9>:-<1-9>] + <1-9>.<0-9>",
    "0x<x8> ^ <name> << <1-31>",
)
_BLOCKS = (
    "for <name> in <name>(<name>):",
    "if <name> == <name>:",
    "if <name> is not <name>:",
    "while <name> <= <name>:",
)
_RUST = (
    "    let <name> = self.<name>.iter().map(|x| x.<name>()).collect::<Vec<_>>();",
    "    if <name>.len() > <1-99> {\n        return Err(Error::<type>);\n    }",
    "    match <name> {\n        Some(<name>) => {}\n        None => unreachable!(),\n    }",
)
_TYPESCRIPT = (
    "\tconst <name> = await this.<name>({ <name>: '<word>', ...options });",
    "\tif (!<name>?.<name>) throw new Error(`<clause>: ${<name>}`);",
    "\tconsole.debug('<clause>', JSON.stringify(<name>, null, <0-4>));",
)
_LEVELS = ("DEBUG", "INFO ", "INFO ", "INFO ", "WARN ", "ERROR")


class Writer:
    """A seeded source of texts."""

    def __init__(self, seed: int) -> None:
        """Starts the sequence that belongs to `seed`."""
        self._random = random.Random(seed)
        self._blanks: dict[str, Callable[[], str]] = {
            "name": self.name,
            "type": self.type_name,
            "word": self.word,
            "path": self.path,
            "clause": self.clause,
            "sentence": self.sentence,
            "value": lambda: self.fill(self.pick(_VALUES)),
        }

    # --- chance ---

    def below(self, limit: int) -> int:
        """An integer in `0 <= n < limit`."""
        return int(self._random.random() * limit)

    def between(self, low: int, high: int) -> int:
        """An integer in `low <= n <= high`."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    # --- patterns ---

    def fill(self, pattern: str) -> str:
        """Fills the blanks of a pattern, from left to right.

        `<name>` and `<type>` are identifiers, `<word>`, `<clause>` and `<sentence>` prose, `<path>` a file, `<value>`
        an expression, `<x8>` eight hexadecimal digits, `<1-99>` a number in that range.
        """
        return _BLANK.sub(self._blank, pattern)

    def _blank(self, blank: re.Match[str]) -> str:
        if blank["kind"]:
            return self._blanks[blank["kind"]]()
        if blank["digits"]:
            return "".join(self.pick("0123456789abcdef") for _ in range(int(blank["digits"])))
        return str(self.between(int(blank["low"]), int(blank["high"])))

    def lines(self, pattern: str, count: int) -> str:
        """A pattern filled several times, one line each."""
        return "\n".join(self.fill(pattern) for _ in range(count))

    # --- names ---

    def word(self) -> str:
        """A word of the lexicon or, now and then, an invented one."""
        if self.chance(0.12):
            return "".join(
                self.pick(_CONSONANTS) + self.pick(_VOWELS) + (self.pick(_CONSONANTS) if self.chance(0.3) else "")
                for _ in range(self.between(2, 3))
            )
        return self.pick(self.pick((NOUNS, NOUNS, VERBS, ADJECTIVES)))

    def name(self) -> str:
        """An identifier in snake case."""
        parts = [self.pick(NOUNS) if self.chance(0.85) else self.word()]
        if self.chance(0.25):
            parts.insert(0, self.pick(ADJECTIVES))
        if self.chance(0.5):
            parts.insert(0, self.pick(VERBS))
        return "_".join(parts)

    def type_name(self) -> str:
        """An identifier in camel case."""
        return "".join(self.pick(NOUNS).capitalize() for _ in range(self.between(1, 2)))

    def path(self) -> str:
        """A file of the imaginary repository."""
        root, ending = self.pick(("src", "src", "tests", "lib", "tools")), self.pick(("py", "py", "rs", "ts"))
        return "/".join([root, *(self.pick(NOUNS) for _ in range(self.between(1, 3))), f"{self.name()}.{ending}"])

    # --- prose ---

    def clause(self) -> str:
        """A clause of a few words."""
        verb = f"{self.pick(('does not', 'should', 'must', 'may', 'cannot', 'will'))} {self.pick(VERBS)}"
        return self.fill(
            f"the {self.pick(ADJECTIVES)} <word> {verb} {self.pick(('its', 'the', 'every'))} <word> <word>"
        )

    def sentence(self) -> str:
        """A sentence; sometimes with an identifier in it, sometimes in another script."""
        if self.chance(0.06):
            return self.pick(SCRIPTS)
        text = self.clause()
        if self.chance(0.5):
            text += f"{self.pick(('', ','))} {self.pick(CONNECTIVES)} {self.clause()}"
        if self.chance(0.3):
            text += self.fill(" (see `<name>` in <path>:<1-900>)")
        return text[0].upper() + text[1:] + self.pick((".", ".", ".", "!", "?", ":"))

    def paragraph(self, sentences: int) -> str:
        """Sentences in a row."""
        return " ".join(self.sentence() for _ in range(sentences))

    # --- code ---

    def python(self, statements: int) -> str:
        """A Python function."""
        head = 'def <name>(<name>: <type>, *, <name>: int = <0-512>) -> <type>:\n    """<sentence>"""'
        lines = [self.fill(head)]
        depth = 1
        for _ in range(statements):
            if depth < _DEEPEST and self.chance(0.25):
                lines.append("    " * depth + self.fill(self.pick(_BLOCKS)))
                depth += 1
            comment = "  # <clause>" if self.chance(0.2) else ""
            lines.append("    " * depth + self.fill(f"<name> = <value>{comment}"))
            if depth > 1 and self.chance(0.2):
                depth -= 1
                lines.append("")
        return "\n".join([*lines, self.fill("    return <value>"), ""])

    def rust(self, statements: int) -> str:
        """A Rust function."""
        head = "/// <sentence>\npub fn <name>(&mut self, <name>: &[u8]) -> Result<Vec<<type>>, Error> {"
        body = [self.fill(self.pick(_RUST)) for _ in range(statements)]
        return "\n".join([self.fill(head), *body, self.fill("    Ok(self.<name>.clone())"), "}", ""])

    def typescript(self, statements: int) -> str:
        """A TypeScript function."""
        head = "export async function <name>(options: Partial<<type>> = {}): Promise<void> {"
        body = [self.fill(self.pick(_TYPESCRIPT)) for _ in range(statements)]
        return "\n".join([self.fill(head), *body, "}", ""])

    def code(self, statements: int) -> str:
        """A function in one of the languages."""
        return self.pick((self.python, self.python, self.rust, self.typescript))(statements)

    # --- what tools print ---

    def source(self) -> str:
        """A passage of a file as an editor tool shows it, with line numbers."""
        lines = "\n".join(self.code(self.between(5, 12)) for _ in range(self.between(1, 3))).split("\n")
        first = self.between(1, 800)
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))

    def diff(self) -> str:
        """A unified diff of one file."""
        path = self.path()
        head = f"diff --git a/{path} b/{path}\nindex <x9>..<x9> 100644\n--- a/{path}\n+++ b/{path}\n"
        body = self.code(self.between(6, 12)).split("\n")
        marked = [self.pick(("-", "+", "+", " ", " ", " ")) + line for line in body]
        return "\n".join([self.fill(f"{head}@@ -<1-700>,{len(body)} +<1-700>,{len(body)} @@ <name>"), *marked])

    def log(self, lines: int) -> str:
        """A service's log, with a stack trace now and then."""
        out = []
        second = self.below(80_000)
        for _ in range(lines):
            second += self.below(4)
            level = self.pick(_LEVELS)
            stamp = f"2031-04-17T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{self.below(1000):03}Z"
            tail = "[<name>-<0-31>] <name>: <clause> id=<x8>-<x4> took=<0-900>.<0-99>ms"
            out.append(self.fill(f"{stamp} {level} {tail}"))
            if level == "ERROR" and self.chance(0.5):
                frame = '  File "/srv/<path>", line <1-900>, in <name>\n    <name> = <value>'
                out += ["Traceback (most recent call last):", self.lines(frame, self.between(2, 4))]
                out.append(self.fill("<type>Error: <sentence>"))
        return "\n".join(out)

    def test_report(self) -> str:
        """The output of a test run, with a failure now and then."""
        count = self.between(6, 16)
        out = ["=" * 24 + " test session starts " + "=" * 24, f"collected {count} items", ""]
        out += [
            self.fill(f"tests/test_<name>.py {'.' * self.between(3, 40)} [{100 * number // count:3}%]")
            for number in range(1, count + 1)
        ]
        failed = self.below(3)
        for _ in range(failed):
            out.append(self.fill(f"{'_' * 20} test_<name> {'_' * 20}\n"))
            out.append(self.python(6))
            out.append(
                self.fill(">       assert <value> == <value>\nE       AssertionError: assert <0-999> == <0-999>")
            )
            out.append(self.fill("E        +  where <0-999> = <<type> object at 0x<x12>>.<name>"))
        out.append(self.fill(f"{'=' * 20} {failed} failed, {count * 9} passed in <0-90>.<10-99>s {'=' * 20}"))
        return "\n".join(out)

    def record(self) -> str:
        """A JSON document, indented, with text of several scripts."""
        value = {
            self.name(): {self.name(): self.below(100_000) / 8, self.name(): self.chance(0.5), self.name(): None},
            self.name(): [self.sentence() for _ in range(self.between(1, 4))],
            self.name(): [{self.name(): self.fill("<x16>")} for _ in range(self.between(2, 6))],
            "note": self.pick(SCRIPTS),
        }
        return json.dumps(value, indent=2, ensure_ascii=self.chance(0.2))

    def output(self) -> str:
        """What some tool printed: one of the above, a search, a listing, several scripts in a row, or nothing."""
        listing = "-rw-r--r--  1 dev dev <1000-99999> Apr <10-30> <10-23>:<10-59> <path>"
        kinds: tuple[Callable[[], str], ...] = (
            self.source,
            self.source,
            self.diff,
            lambda: self.log(self.between(6, 16)),
            self.test_report,
            lambda: self.lines("<path>:<1-1500>:    <value>", self.between(8, 24)),
            lambda: self.lines(listing, self.between(6, 18)),
            self.record,
            lambda: "\n".join(self.pick(SCRIPTS) for _ in range(self.between(4, 10))),
            lambda: "",
        )
        return self.pick(kinds)()
