import type { KnownSource } from "#model/known-source.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { CountsUnreadableError } from "#proof/rules/compare-counts.ts";
import type { Check, Checked } from "./check.ts";
import { checkIds, checkRecords } from "./check-events.ts";
import { checkCounts, checkDays, checkHours, checkRollUps, checkSeals, checkSources } from "./check-hours.ts";

export interface ChecksToRun extends Checked {
  /** Null: the platform is not asked. */
  readonly edge: Pick<EdgeClient, "searchEventLogs"> | null;
  /** Also compares a few hours id by id. */
  readonly ids: boolean;
  /** Those of the configuration file. */
  readonly knownSources: readonly KnownSource[];
}

/** Runs every check over whole hours. `onStep` is called with the finished share of all checks. */
export async function runChecks({
  edge,
  ids,
  knownSources,
  onStep,
  ...asked
}: ChecksToRun): Promise<Check[]> {
  const counts = { name: "platform counts", check: checkCounts };
  const ofPlatform = ids ? [counts, { name: "event ids", check: checkIds }] : [counts];
  const checkCounted = (one: Checked) => checkSources(one, knownSources);
  const ofStore = [checkDays, checkHours, checkSeals, checkRollUps, checkCounted, checkRecords];
  const all = ofPlatform.length + ofStore.length;
  const checks: Check[] = [];
  const checked: Checked = {
    ...asked,
    onStep: (label, share) => {
      asked.signal.throwIfAborted();
      onStep(label, (checks.length + share) / all);
    },
  };
  if (edge === null) checks.push(notAsked());
  else
    for (const { name, check } of ofPlatform)
      checks.push(await askPlatform(name, () => check(checked, edge)));
  for (const check of ofStore) checks.push(await check(checked));
  return checks;
}

/** Turns a failure of the platform into a failed check, so that the other checks still run. */
async function askPlatform(name: string, check: () => Promise<Check>): Promise<Check> {
  try {
    return await check();
  } catch (thrown) {
    if (!(thrown instanceof EdgeError) && !(thrown instanceof CountsUnreadableError)) throw thrown;
    return { ...NOTHING, name, failure: `${thrown.code} ${thrown.message}` };
  }
}

function notAsked(): Check {
  return {
    ...NOTHING,
    compared: "nothing",
    notes: ["the platform was not asked, because EDGE_API_URL is not set"],
  };
}

const NOTHING: Check = {
  name: "platform counts",
  sides: ["the platform", "stored"],
  compared: "nothing",
  differences: [],
  notes: [],
  failure: null,
};
