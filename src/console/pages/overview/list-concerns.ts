import type { StatusAnswer } from "../../../http/routes/v1/status.ts";
import { formatDuration } from "../../../lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/units.ts";
import type { Zone } from "../../api/status.ts";
import { zoneTitle } from "../../state/zones.ts";

export interface Concern {
  readonly text: string;
  readonly path: string;
  readonly action: string;
}

/** An open hour is normal until so few hours are left to prove it. */
const WARN_HOURS = 12;
const LATE_MS = 10 * MINUTE_MS;

/** Everything about Longwatch itself that a person should look at, in sentences. */
export function listConcerns({ now, channels, service }: StatusAnswer, zones: readonly Zone[]): Concern[] {
  const nowMs = Date.parse(now);
  return [
    ...zones.flatMap((zone) => listZoneConcerns(zone, nowMs)),
    ...(channels ?? []).flatMap(({ name, circuit, dead, lastError }) => {
      const problem =
        circuit === "open"
          ? `Channel ${name} fails`
          : dead > 0
            ? `Channel ${name} has ${dead} dead letters`
            : null;
      const why = lastError === null ? "" : `: ${lastError}`;
      return problem === null ? [] : [{ text: `${problem}${why}`, path: "/operations", action: "Why" }];
    }),
    ...(service?.missingRoles ?? []).map((role) => ({
      text: `No live process has the role ${role}.`,
      path: "/operations",
      action: "Why",
    })),
  ];
}

function listZoneConcerns(zone: Zone, nowMs: number): Concern[] {
  const { hoursToLoss, suspicions, quarantined, searchedThrough } = zone;
  const name = zoneTitle(zone);
  const at = (text: string) => ({ text, path: "/coverage", action: "Why" });
  const lateMs = searchedThrough === null ? 0 : nowMs - Date.parse(searchedThrough);
  return [
    ...(hoursToLoss !== null && hoursToLoss < WARN_HOURS
      ? [
          at(
            `${name}: the platform deletes the oldest open hour in ${formatDuration(hoursToLoss * HOUR_MS)}, unless it is proven before.`,
          ),
        ]
      : []),
    ...suspicions.map(({ route, reason }) =>
      at(`${name}: the platform's route ${route} shows less than before: ${reason}`),
    ),
    ...(lateMs > LATE_MS ? [at(`${name}: the last poll was ${formatDuration(lateMs)} ago.`)] : []),
    ...(quarantined > 0
      ? [at(`${name}: ${quarantined} entries could not become events and are in quarantine.`)]
      : []),
  ];
}
