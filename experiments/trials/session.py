"""Trial 7: an IPython session, as in a notebook: what is shown, completed, explained and drawn.

Every result is a line at the prompt and a table in a notebook; names complete without private ones;
a name that does not exist is met with the nearest one.
"""

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

CELLS = """
import optpess as op
op.zoo.names()
media = op.zoo.problem("media")
media.model
plan = op.solve(media.model)
plan
plan.policy.shape
curve = op.frontier(media.model)
curve
baseline = op.zoo.baseline("media")
baseline
known = op.Knowledge(stationary=True)
told = dict(shape=media.model.shape, initial=media.model.initial, baseline=baseline)
learner = op.OptPessMix(knowledge=known, **told)
learner
learner.guarantee
learner.progress
run = op.simulate(media.model, learner, episodes=100_000, seed=1, replicates=2)
run
run.learners[0]
run.to_frame().tail(3)
always = op.AlwaysBaseline(num_episodes=5000, **told)
found = op.compare(media.model, {"mix": learner, "safe policy": always}, episodes=5000, seed=1)
found
found.to_frame()
env = op.environments.as_gymnasium(media.model)
live = op.rollout(learner, env, episodes=300)
live
figure = run.plot()
op.forecast(media.model, always)
learner.next_policy()
learner.abandon()
run.save("media.npz")
op.load_run("media.npz")
op.reproduce("media.npz")
op.zoo.problem("medai")
"""
HELP = ["op.simulate?", "op.OptPessMix?", "op.rollout?", "run.gain?", "op.Knowledge?"]

shell = InteractiveShell.instance()
longest, failed, tables = 0, [], set()
for cell in CELLS.strip().splitlines():
    with capture_output() as shown:
        result = shell.run_cell(cell, store_history=True)
    if not result.success:
        last = shown.stdout.strip().splitlines()[-1]
        failed.append(last)
        print(f"In: {cell}\n    {last}")
    elif result.result is not None:
        text, _ = shell.display_formatter.format(result.result)
        lines = text["text/plain"].splitlines()
        longest = max(longest, len(lines))
        forms = "+html" if "text/html" in text else ""
        print(f"In: {cell}\n    {lines[0][:160]}  [{len(lines)} line(s){forms}]")
        tables |= {cell} if "<table" in text.get("text/html", "") else set()
assert len(failed) == 1 and "did you mean 'media'?" in failed[0], failed
assert longest <= 15, longest
assert tables >= {"plan", "run", "found"}, tables

for question in HELP:
    with capture_output() as shown:
        shell.run_cell(question)
    print(f"{question}  {len(shown.stdout.splitlines())} lines of help")
    assert len(shown.stdout.splitlines()) > 5

for start, wanted in [
    ("op.zoo.", "media"),
    ("op.Opt", "OptPessMix"),
    ("run.", "deployed_cost"),
    ("live.", "to_frame"),
]:
    with provisionalcompleter():
        names = {found.text for found in shell.Completer.completions(start, len(start))}
    print(f"{start}<tab>  {len(names)} names")
    assert wanted in names
    assert not any(name.startswith("_") or name == "annotations" for name in names), names
# Progress of a long call, as the kernel of a notebook shows it: this shell is made to look like one.
shell.kernel = object()
with capture_output() as shown:
    shell.run_cell("op.simulate(media.model, learner, episodes=10_000_000, seed=1)")
texts = [output.data["text/plain"] for output in shown.outputs if "episodes/s" in str(output.data)]
print(f"progress in a notebook: {len(texts)} times, at last {texts[-1]}")
assert "s left" in texts[0]
print(
    f"{len(CELLS.strip().splitlines())} cells; the longest answer has {longest} lines; "
    f"tables in notebooks for {len(tables)} of them"
)
