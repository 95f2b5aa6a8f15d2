import type { HourProfile } from "./hour-profile.ts";
import type { LevelOf } from "./zone-level.ts";

/** Negative logarithm of the probability of no event. */
const PROOF = 12;
/** Rules with fewer events a day come in sessions that leave hours without any. */
const LEAST_PER_DAY = 50;
const LEAST_KNOWN_HOURS = 96;
/** A rule with fewer events in a week cannot be silent. */
export const LEAST_EVENTS = (LEAST_PER_DAY * LEAST_KNOWN_HOURS) / 24;
/** Copying an event and counting it takes a while. */
export const LEAST_QUIET_MINUTES = 5;
/** Longer ago no alert is of use. It is also the most hours that a judgement adds up. */
const LONGEST_HOURS = 168;
/** Fewer missing events prove nothing, however regular the rule is. */
export const LEAST_MISSING = PROOF;
/** The dispersion of the hourly counts: 0.05 is a rule of few bursts, 50 is nearly regular. */
const [LEAST_KAPPA, MOST_KAPPA] = [0.05, 50];

/** A rule without events since a minute, and its zone. */
export interface Gap {
  /** The rule's week up to the hour of its last event. */
  readonly profile: HourProfile;
  /** The minute of its last event, and the end of the minutes that are known; since the epoch. */
  readonly lastMinute: number;
  readonly through: number;
  readonly isUnknownHour: (hour: number) => boolean;
  readonly levelOf: LevelOf;
}

/**
 * Returns the events that are missing since the rule's last one, if their absence is no chance; null otherwise. Events of
 * a rule come in heaps, so their hourly counts are taken as negative binomial: a Poisson distribution would call every
 * quiet evening a silence. Hours that are not known add nothing, and hours in which the whole zone is quiet little.
 */
export function judgeSilence(gap: Gap): number | null {
  const { profile, lastMinute, through, isUnknownHour, levelOf } = gap;
  const isBusy = profile.known >= LEAST_KNOWN_HOURS && profile.mean * 24 >= LEAST_PER_DAY;
  if (!isBusy || through - lastMinute < LEAST_QUIET_MINUTES) return null;
  const [firstHour, openHour] = [Math.floor(lastMinute / 60), Math.floor(through / 60)];
  if (openHour - firstHour > LONGEST_HOURS) return null;
  let [missing, hours] = [0, 0];
  for (let hour = firstHour; hour <= openHour; hour += 1) {
    if (hour !== openHour && isUnknownHour(hour)) continue;
    const share = (Math.min((hour + 1) * 60, through) - Math.max(hour * 60, lastMinute + 1)) / 60;
    if (share <= 0) continue;
    const usual = profile.expectedAt(hour);
    const level = (at: number) => levelOf({ hour: at, usual, quietMinutes: through - lastMinute - 1 });
    // Whether the zone was as busy after the rule's last event as before, the next hour says.
    const isFirst = hour === firstHour && hour < openHour;
    missing += share * usual * (isFirst ? Math.min(level(hour), level(hour + 1)) : level(hour));
    hours += share;
  }
  if (missing < LEAST_MISSING) return null;
  const excess = profile.variance - profile.mean;
  const ratio = excess <= 0 ? MOST_KAPPA : profile.mean ** 2 / excess;
  const shape = Math.min(Math.max(ratio, LEAST_KAPPA), MOST_KAPPA) * Math.max(1, hours);
  return shape * Math.log1p(missing / shape) >= PROOF ? missing : null;
}
