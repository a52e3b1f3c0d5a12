"""Print the requirements of groups of pyproject.toml, one a line, for `pip install -r /dev/stdin`.

pip can install a project's extras only together with the project, which would build the extension. Linting must not
wait for that, so this reads the lists where they are declared. `build` is the build system, `run` the plain
dependencies, every other name an extra; extras that name this project's other extras are followed.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(group: str) -> Iterator[str]:
    """Yields the requirement strings of one group, this project's own extras expanded."""
    document = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = document["project"]
    own = re.compile(rf"{re.escape(project['name'])}\[(.+)\]")
    groups = {
        "build": document["build-system"]["requires"],
        "run": project["dependencies"],
        **project["optional-dependencies"],
    }
    for requirement in groups[group]:
        if extras := own.fullmatch(requirement):
            for extra in extras[1].split(","):
                yield from requirements(extra.strip())
        else:
            yield requirement


def main() -> None:
    """Prints the groups named on the command line, each requirement once."""
    wanted = (requirement for group in sys.argv[1:] for requirement in requirements(group))
    sys.stdout.writelines(f"{requirement}\n" for requirement in dict.fromkeys(wanted))


if __name__ == "__main__":
    main()
