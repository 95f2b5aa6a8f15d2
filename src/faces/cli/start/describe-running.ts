import type { RunningApp } from "#app/app.ts";
import { listAlerts } from "#db/alerting/alert-reports.ts";
import { showAge } from "#lib/format.ts";
import { OWN_COMMAND } from "#lib/process.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";

/** The emulated attack at the moment when the history is complete. */
export interface RunningAttack {
  readonly zoneId: number;
  /** Negative after the start of the attack. */
  readonly startsInMs: number;
  /** The unresolved alert of the attacked rule, or null. */
  readonly alertId: number | null;
}

/** Returns the emulated attack, or null on a real platform. */
export async function readAttack({
  platform,
  database,
}: Pick<RunningApp, "platform" | "database">): Promise<RunningAttack | null> {
  const { attack } = platform;
  if (attack === null) return null;
  const { zoneId, ruleId, startsAtMs } = attack;
  const [alert] = await listAlerts(database.db, {
    states: UNRESOLVED_STATES,
    zoneId,
    rule: ruleId,
    limit: 1,
  });
  return { zoneId, startsInMs: startsAtMs - Date.now(), alertId: alert?.id ?? null };
}

export interface SignInPlace {
  /** The console's URL. */
  readonly url: string;
  /** Null where the output is no terminal, or there is no valid admin key. */
  readonly link: string | null;
}

/** Returns the text that a start prints as soon as the console can be opened. */
export function describeSignIn({ url, link }: SignInPlace, command = OWN_COMMAND): string {
  return link === null
    ? `The console: ${url}\nTo get a link that signs in once:\n  ${command} sign-in\n`
    : `The console. This link signs in once and is valid for ten minutes:\n  ${link}\n`;
}

/** Returns the text that a start prints at its end. Every line without a long address fits 80 columns. */
export function describeRunning(
  {
    platform,
    httpUrl,
    zoneIds,
    attack,
  }: Pick<RunningApp, "httpUrl" | "zoneIds"> & {
    readonly platform: Pick<RunningApp["platform"], "url" | "isEmulated">;
    readonly attack: RunningAttack | null;
  },
  /** `dataDir` is null if the state is in an external database. */
  { dataDir, command = OWN_COMMAND }: { readonly dataDir: string | null; readonly command?: string },
): string {
  const commands: [string, string][] = [
    ["status", "is it running, what needs attention"],
    ["coverage", "which hours are complete"],
    ["alerts list", "unresolved alerts"],
    ["gaps", "lost hours and the reasons"],
    ["sign-in", "a new link to the console"],
    ["--help", "all commands"],
  ];
  const widest = Math.max(...commands.map(([typed]) => typed.length));
  const lines = commands.map(([typed, does]) => `  ${command} ${typed.padEnd(widest)}  ${does}`);
  const addresses = [
    ...(httpUrl === null
      ? []
      : [
          "",
          "The API, with the key that the first start printed (or one of `keys create`):",
          `  curl -H "AccessKey: $KEY" ${httpUrl}/api/v1/alerts`,
          `  ${httpUrl}/docs  every route, with examples`,
        ]),
    ...(platform.isEmulated ? ["", "The data of the emulated platform:", `  ${platform.url}/_emulator`] : []),
  ];
  const zones = `Watching ${zoneIds.length === 1 ? "zone" : "zones"} ${zoneIds.join(", ")}.`;
  return [
    attack === null ? zones : describeAttack(attack, command),
    "",
    "Commands for another terminal:",
    ...lines,
    ...addresses,
    "",
    ...(dataDir === null ? [] : [`State is kept in ${dataDir}.`]),
    "Ctrl-C stops everything that was started.",
    "",
  ].join("\n");
}

function describeAttack({ zoneId, startsInMs, alertId }: RunningAttack, command: string): string {
  if (alertId !== null)
    return `An attack on zone ${zoneId} is emulated. Its alert is open, so no new alert appears:\n  ${command} alerts show ${alertId}`;
  const when = startsInMs > 0 ? `begins in ${showAge(startsInMs)}` : `began ${showAge(-startsInMs)} ago`;
  return `An attack on zone ${zoneId} ${when}. Its alert appears here, a minute later\nat most.`;
}
