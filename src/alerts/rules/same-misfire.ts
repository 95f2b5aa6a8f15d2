import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { HOUR_MS } from "#lib/units.ts";
import { isChangeKind } from "#model/rules.ts";
import { notifiedChannels } from "./alert-history.ts";
import { type AlertRecord, holdsAlert, isMuted } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { type Context, createAssessor } from "./assess.ts";
import { toSituation } from "./verdict-effects.ts";

/** Misfires of a zone that begin so soon after each other have one cause: a deploy, a rule set, a sale. */
const SAME_MISFIRE_MS = HOUR_MS;

interface Misfire {
  readonly spike: AlertSpike;
  /** The template of its sample's path; empty if there is none. */
  readonly path: string;
  readonly isNotified: boolean;
}

/**
 * Returns the context with the spikes that are misfires like another one of their zone, which people are notified of: they began
 * within an hour of it, or their requests are on its path. Nobody is notified of them, too, while both latest verdicts say misfire
 * and that alert is open. Of several of which nobody was notified yet, the first is the one, unless it is muted. `recordOf` returns
 * the alert of a spike.
 */
export function withSameMisfires(
  context: Context,
  spikes: readonly AlertSpike[],
  recordOf: (spike: AlertSpike) => AlertRecord | null,
): Context {
  const assess = createAssessor(context);
  const notified: Misfire[] = [];
  const sameMisfires = new Set<number>();
  for (const one of findMisfires(context, spikes, recordOf)) {
    if (one.isNotified) notified.push(one);
    else if (notified.some((other) => isLike(one, other))) sameMisfires.add(one.spike.id);
    else if (one.spike.closedAtMs === null && !isMuted(toSituation(assess(one.spike), null).mute))
      notified.push(one);
  }
  return sameMisfires.size === 0 ? context : { ...context, sameMisfires };
}

/** Returns the misfires of which people were notified, then the others, each in the order of their beginnings. */
function findMisfires(
  { verdicts }: Context,
  spikes: readonly AlertSpike[],
  recordOf: (spike: AlertSpike) => AlertRecord | null,
): Misfire[] {
  const found = spikes.flatMap((spike): Misfire[] => {
    const verdict = verdicts?.get(spike.id)?.at(-1);
    if (verdict?.said !== "misfire" || isChangeKind(spike.kind)) return [];
    const alert = recordOf(spike);
    const isOpen = alert !== null && alert.state !== "resolved" && holdsAlert(alert, spike);
    const path = verdict.sample === null ? "" : templateOf(verdict.sample.url);
    return [{ spike, path, isNotified: isOpen && notifiedChannels(alert).size > 0 }];
  });
  return found.toSorted(
    (a, b) =>
      Number(b.isNotified) - Number(a.isNotified) ||
      a.spike.openedAtMs - b.spike.openedAtMs ||
      a.spike.id - b.spike.id,
  );
}

function isLike(one: Misfire, other: Misfire): boolean {
  if (one.spike.zoneId !== other.spike.zoneId) return false;
  const laterMs = one.spike.openedAtMs - other.spike.openedAtMs;
  return Math.abs(laterMs) <= SAME_MISFIRE_MS || (one.path !== "" && one.path === other.path);
}
