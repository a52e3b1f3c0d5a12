"""How much of a text is not encoded again: `python benches/kept.py [MODEL...]`.

Each row is a kind of change, on a conversation of 200 turns: *append*, one more message at turn 200; *edit*, another
word in message 3; *strip*, the reasoning of an answer in the middle is gone. Printed is how many ids came from the
beginning of an earlier text, how many were found again behind the change, and how many were computed. Ids are compared
with those of a full encode every time.
"""

from pathlib import Path

from memory import engine, for_each_model, texts

MESSAGES = 400


def measure(model: Path) -> None:
    """Prints the three rows of a model."""
    contents, before, after = texts(model)
    parts = [f"{before}{n} {contents[n % len(contents)]}{after}" for n in range(MESSAGES)]
    thought = f"<think>\nFirst look at the files; {'then the word is changed here. ' * 30}\n</think>\n"
    parts[200] = f"{before}{thought}And so it is.{after}"
    native = engine(model, 1 << 30)
    base = "".join(parts[:-1])
    first = len(native.encode(base, 0, 0))

    def turn(name: str, changed: str) -> None:
        before_call = native.stats()
        prompt = native.encode(changed, 0, 0)
        now = native.stats()
        assert prompt.tolist() == native.encode_full(changed).tolist(), name
        spent = {key: now[key] - before_call[key] for key in ("kept_tokens", "shared_tokens", "encoded_tokens")}
        share = 1 - spent["encoded_tokens"] / len(prompt)
        print(
            f"  {name:8} {len(prompt):8,} ids: {spent['kept_tokens']:8,} kept, {spent['shared_tokens']:8,} found "
            f"behind, {spent['encoded_tokens']:6,} encoded; {share:.2%} not encoded again"
        )

    print(f"{model.name}: {MESSAGES} messages, {first:,} ids")
    turn("append", base + parts[-1])
    turn("edit", "".join([*parts[:3], parts[3].replace(" ", " changed ", 1), *parts[4:]]))
    turn("strip", "".join([*parts[:200], f"{before}And so it is.{after}", *parts[201:]]))


if __name__ == "__main__":
    for_each_model(__doc__, measure)
