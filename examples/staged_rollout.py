"""A controller for a cart on a slope is deployed step by step, without exceeding a budget of energy.

The environment is a Gymnasium environment with continuous states, defined here. The baseline pushes
gently and always; the candidate plans its pushes. How often the candidate plays is decided by
`op.StagedRollout` from the costs of the episodes it has played. Needs the extra `gym`
(`pip install "optpess[gym]"`). Run it with `python examples/staged_rollout.py`; takes a few seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optpess as op

try:
    import gymnasium
except ImportError:
    print('This example needs Gymnasium: pip install "optpess[gym]"')
    raise SystemExit from None

STEPS = 40
BUDGET = 6.0  # the largest expected energy of an episode
BASELINE_ENERGY = 3.6  # the baseline makes 40 pushes of 0.3
SHOWN = (0, 10, 30, 100, 300, 1000, 3000)


class Cart(gymnasium.Env[np.ndarray, np.ndarray]):
    """A cart on a windy slope, to be held near the top. The reward is its closeness to the top; the
    cost, reported as ``info["energy"]``, is the square of the push, in [0, 1].
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts at a random place, at rest."""
        super().reset(seed=seed, options=options)
        self._state = np.array([self.np_random.normal(0.0, 0.5), 0.0])
        self._step = 0
        return self._state.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Pushes the cart; the wind pushes too, and the slope pulls it away from the top."""
        push = float(np.clip(action[0], -1.0, 1.0))
        position, speed = self._state
        wind = self.np_random.normal(0.0, 1.7)
        speed += 0.1 * (0.3 * np.tanh(position) + 2.0 * push - 0.4 * speed + wind)
        self._state = np.array([position + 0.1 * speed, speed])
        self._step += 1
        reward = float(np.exp(-(self._state[0] ** 2)))
        return self._state.copy(), reward, False, self._step == STEPS, {"energy": push * push}


def baseline(observation: np.ndarray) -> np.ndarray:
    """Pushes gently against the displacement."""
    return np.clip([-0.3 * np.sign(observation[0])], -1.0, 1.0)


def candidate(observation: np.ndarray) -> np.ndarray:
    """Pushes against displacement and speed: better, with bursts of energy."""
    return np.clip([-1.2 * observation[0] - 0.9 * observation[1]], -1.0, 1.0)


def play(environment: Cart, controller: Any) -> tuple[float, float]:
    """The total reward and the total energy of an episode."""
    observation, _ = environment.reset()
    reward = energy = 0.0
    ended = False
    while not ended:
        observation, gained, terminated, truncated, info = environment.step(controller(observation))
        reward, energy, ended = reward + gained, energy + info["energy"], terminated or truncated
    return reward, energy


def main() -> None:
    """Deploys the candidate and prints how its share grows."""
    environment = Cart()
    environment.reset(seed=0)
    rollout = op.StagedRollout(
        cost_limit=BUDGET,
        baseline_cost=BASELINE_ENERGY,
        max_episode_cost=float(STEPS),
        failure_probability=0.05,
        seed=0,
    )
    print(f"budget {BUDGET}, energy of the baseline at most {BASELINE_ENERGY} an episode\n")
    print("episode   share of the candidate   its energy: average, bound   reward so far")
    rewards = []
    for episode in range(max(SHOWN) + 1):
        if episode in SHOWN:
            average = f"{rollout.candidate_average[0]:.2f}" if rollout.candidate_episodes else "-"
            bound = rollout.certificate.candidate_costs[0]
            gained = f"{np.mean(rewards):.2f}" if rewards else "-"
            print(f"{episode:7}   {rollout.weight:22.3f}   {average:>19}, {bound:5.2f}   {gained:>13}")
        reward, energy = play(environment, candidate if rollout.use_candidate() else baseline)
        rollout.record(energy)
        rewards.append(reward)
    print(f"\n{rollout}")


if __name__ == "__main__":
    main()
