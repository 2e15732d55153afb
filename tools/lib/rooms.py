"""Who may include whom: the rooms of this house, for tools/check."""
# One question per folder, and in actors/, models/, cpu/, gpu/ and messages/ per room: a folder inside them. Each line
# says what its folder may include of ours besides itself; for a file the longest folder that holds it decides. "x" is
# the files right in x, "x/*" all below, too. Circles between rooms are a violation, so a new room is one line here.
MAY_INCLUDE = {
    "messages": {"models"},
    "messages/wire": {"messages"},
    "models": set(),
    "models/spec": {"models"},
    "models/net": {"models", "models/spec"},
    "models/solver": {"models", "models/spec", "models/net"},
    "models/files": {"models", "models/spec", "models/net", "models/solver"},
    "models/device": {"models", "models/spec", "models/net", "models/solver"},
    "models/plan": {"models", "models/spec", "models/net", "models/solver", "models/device"},
    "data": {"models/*"},
    "cpu": {"models/*"},
    "cpu/kernels": {"cpu", "models/*"},
    "cpu/winograd": {"cpu", "cpu/kernels", "models/*"},
    "cpu/layers": {"cpu", "cpu/kernels", "cpu/winograd", "models/*"},
    "gpu": {"gpu/runtime", "gpu/kernels", "models/*"},
    "gpu/runtime": {"models"},
    "gpu/kernels": {"gpu/runtime", "models/*"},
    "gpu/layers": {"gpu", "gpu/runtime", "gpu/kernels", "models/*"},
    "gpu/cuda": {"gpu", "gpu/runtime", "models"},
    "gpu/simulated": {"gpu", "gpu/runtime"},
    "replay": {"models/*"},
    "actors": {"actors/*"},
    "actors/core": {"messages", "models"},
    "actors/links": {"actors/core", "messages/*", "models/*"},
    "actors/parameters": {"actors/core", "actors/links", "messages/*", "models/*"},
    "actors/client": {"actors/core", "actors/parameters", "messages/*", "models/*"},
    "actors/training": {"actors/core", "messages", "models/*", "data"},
    "actors/run": {"actors/core", "actors/parameters", "messages/*", "models/*", "data"},
    "actors/membership": {"messages/*", "models/*", "data"},
    "actors/cluster": {"actors/core", "actors/links", "actors/membership", "messages/*", "models/*"},
    "actors/routes": {"actors/core", "actors/run", "messages/*", "models/*"},
    "actors/telemetry": {"actors/core", "actors/links", "actors/run", "messages/*", "models/*"},
    "actors/node": {"actors/*", "messages/*", "models/*", "data"},
    "apps": None,
    "tests": None,
    "tools": None,
}
ONLY_IN_ACTORS = {"every_actor.hpp", "every_actor.cpp"}  # the contents page; every other source lies in a room


def room_of(name):
    """The longest folder in MAY_INCLUDE that holds the file; None for a header that is not ours."""
    folder = name
    while "/" in folder:
        folder = folder.rsplit("/", 1)[0]
        if folder in MAY_INCLUDE:
            return folder
    return None


def may_include(room, target):
    """Whether a file of `room` may include one of `target`; both are keys of MAY_INCLUDE."""
    allowed = MAY_INCLUDE[room]
    return allowed is None or target == room or any(
        target == entry or (entry.endswith("/*") and (target + "/").startswith(entry[:-1])) for entry in allowed)


def reaches(start, goal, pairs):
    """Whether `goal` is included from `start`, directly or through other rooms."""
    seen, open_rooms = {start}, [start]
    while open_rooms:
        room = open_rooms.pop()
        for source, target in pairs:
            if source == room and target not in seen:
                if target == goal:
                    return True
                seen.add(target)
                open_rooms.append(target)
    return False


def upward_includes():
    """For each room an include that it may not have, and one each way between the two rooms that must not meet."""
    for room, allowed in MAY_INCLUDE.items():
        if allowed is None or room == "actors":
            continue
        yield room, "apps/run_app.hpp" if room != "apps" else "tests/sim.hpp"
        other = next((r for r in MAY_INCLUDE if r.startswith(room.split("/")[0] + "/") and not may_include(room, r)), None)
        if other:
            yield room, f"{other}/planted.hpp"
    yield "actors/training", "actors/parameters/gradient_push.hpp"
    yield "actors/parameters", "actors/training/layer.hpp"
