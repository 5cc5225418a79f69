"""The cascading wheel with the level chosen as in Tokio: that of the highest digit in base 256 in
which deadline and clock differ. So a slot is opened once.
"""

from tests.references.cascading_wheel import LEVELS, SLOTS, CascadingWheel
from tests.references.common import Armed


class DenseWheel(CascadingWheel):
    def arm(self, timer: Armed) -> None:
        moment = max(timer.deadline, self.now)  # ours: what is due is in the present slot
        timer.level = 0
        while moment // SLOTS ** (timer.level + 1) != self.now // SLOTS ** (timer.level + 1):
            timer.level += 1
        if timer.level < LEVELS:
            timer.within = self.wheels[timer.level][self.slot(moment, timer.level)]
        else:  # ours
            self.bound = min(timer.deadline, self.bound) if self.overflow else timer.deadline
            timer.within = self.overflow
        timer.within.append(timer)

    def run(self, until: int) -> None:
        self.deliver(self.present())
        super().run(until)

    def present(self) -> list[Armed]:
        return self.wheels[0][self.slot(self.now, 0)]

    def has_due(self) -> bool:
        return bool(self.present())

    def filed(self, timer: Armed) -> dict[str, int | str]:
        if timer.within is self.overflow:
            return {"bucket": "overflow"}
        moment = max(timer.deadline, self.now)
        return {"level": timer.level + 1, "slot": self.slot(moment, timer.level)}
