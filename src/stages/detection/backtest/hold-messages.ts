import type { ReplayedMessage } from "./replayed-message.ts";
import type { createTeller, Tellable } from "./tell-alerts.ts";

type Teller = ReturnType<typeof createTeller>;
type Named = Pick<ReplayedMessage, "attackers" | "rules">;

/** Minutes [from, to) whose events come at their end. */
export interface HeldMinutes {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns a teller that holds back the messages of minutes whose events come late. At the end of these minutes it sends one
 * message about everything that they have shown and nobody was notified of, and ends the alerts that are over. The next
 * minute sends the messages about alerts that go on.
 */
export function holdMessages(teller: Teller, { from, to }: HeldMinutes): Teller & { finish: () => void } {
  const known = new Set<string>();
  const found = new Map<string, ReplayedMessage["attackers"][number]>();
  const rules = new Set<string>();
  const ended = new Map<string, Tellable>();
  let isOver = false;
  const idOf = ({ kind, key }: ReplayedMessage["attackers"][number]) => `${kind}=${key}`;
  const isHeld = (at: number) => at > from && at <= to;
  const remember = ({ attackers, rules: of }: Named) => {
    for (const attacker of attackers) known.add(idOf(attacker));
    for (const rule of of) known.add(`rule ${rule}`);
  };
  const collect = ({ attackers, rules: of }: Named) => {
    for (const one of attackers) if (!known.has(idOf(one))) found.set(idOf(one), one);
    for (const rule of of) if (!known.has(`rule ${rule}`)) rules.add(rule);
  };
  function release(): void {
    if (isOver) return;
    isOver = true;
    if (found.size + rules.size > 0)
      teller.announce(to, { attackers: [...found.values()], rules: [...rules] });
    for (const one of ended.values()) teller.end(to, one);
  }
  return {
    ...teller,
    update(at, one) {
      if (at > to) release();
      // What is open when the late minutes begin is no news of theirs.
      if (at === from) remember(one);
      if (!isHeld(at)) return teller.update(at, one);
      ended.delete(one.name);
      collect(one);
    },
    end(at, one) {
      if (at > to) release();
      if (isHeld(at)) ended.set(one.name, one);
      else teller.end(at, one);
    },
    finish: release,
  };
}
