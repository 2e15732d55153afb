"""poseidon-launch N COMMAND [WORD ...]: starts the workers of a script on this machine. It is tools/launch/local, whose files lie beside this one
where the package is installed."""

import runpy
import sys
from pathlib import Path


def main() -> None:
    here = Path(__file__).resolve().parent
    places = [here / "launcher"]
    if len(here.parents) > 2:
        places.append(here.parents[2] / "tools/launch")  # of a checkout
    folder = next((place for place in places if (place / "local").exists()), None)
    if folder is None:
        sys.exit(f"poseidon-launch: there is no launcher in {' or '.join(map(str, places))}: install Poseidon's wheel, or use tools/launch/local of a checkout")
    sys.path.insert(0, str(folder))
    runpy.run_path(str(folder / "local"), run_name="__main__")


if __name__ == "__main__":
    main()
