import { type Examined, see } from "#jobs/health/conditions/condition.ts";
import type { ServiceLife } from "#jobs/health/conditions/processes.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  type ChannelFacts,
  type DoctorFacts,
  type FileFacts,
  type Finding,
  type LooseFacts,
  note,
  ok,
  type PlatformFacts,
  problem,
  warning,
} from "./facts.ts";
import {
  judgeBucket,
  judgeDatabaseSize,
  judgeDisks,
  judgeOffset,
  judgePostgres,
  judgeRedis,
  judgeSizes,
} from "./judge-stores.ts";

const CHECKS: Readonly<Record<Examined["condition"]["of"], string>> = {
  service: "service",
  account: "service",
  zone: "zone",
  channel: "channels",
  destination: "forward",
  silence: "silences",
};

/** A grave condition that may still end by itself, or that is over, is a warning. */
function judgeCondition({ condition, found, severity, isDue, isOpen }: Examined): Finding[] {
  if (found === null) return [];
  const isGrave = severity === "critical" || severity === "error";
  const isNow = (isDue || isOpen || condition.isShownEarly === true) && found.isOver !== true;
  const level = severity === "info" ? "note" : isGrave && isNow ? "problem" : "warning";
  const { headline, next = see("alerts list --kind self") } = found;
  return [{ check: CHECKS[condition.of], level, text: headline.replace(/[^.]$/, "$&."), next: next.text }];
}

/** Returns what the facts mean and what to do, in the order of the parts. */
export function judge(facts: DoctorFacts): Finding[] {
  const { postgres } = facts;
  const dayBytes = "value" in postgres ? postgres.value.dayBytes : null;
  return [
    ...(facts.platform.length === 0 ? [NO_PLATFORM] : facts.platform.flatMap(judgePlatform)),
    ...facts.conditions.flatMap(judgeCondition),
    ...judgePostgres(postgres),
    ...judgeRedis(facts.redis),
    ...judgeBucket(facts.bucket),
    ...judgeSizes(postgres),
    ...judgeDisks(facts.disks, dayBytes),
    ...judgeDatabaseSize(facts),
    ...judgeChannels(facts),
    ...judgeIssuer(facts.issuer),
    ...judgeKnown(facts.tooManyKnown),
    ...facts.destinations.map(judgeDestination),
    ...judgeFiles(facts.files),
    ...judgeLoose(facts.loose),
    ...judgeAdminKey(facts.adminKeyLeftMs),
    ...judgeService(facts.service, facts.version),
  ];
}

const NO_PLATFORM = note(
  "platform",
  "No platform is configured here.",
  "Set EDGE_API_URL, EDGE_API_KEY and EDGE_SHIELD_ZONES to those of the service.",
);

function judgePlatform({ account, host, roles, zones, offsetMs }: PlatformFacts): Finding[] {
  const of = account === null ? "" : ` of account ${account}`;
  return [
    ...judgeKey(roles, host, of),
    ...zones.map(({ zoneId, failed }) =>
      failed === null
        ? ok("zone", `The key${of} may search the events of zone ${zoneId}.`)
        : problem(
            "zone",
            `A search of zone ${zoneId}${of} failed: ${failed}.`,
            "Correct that; until then the zone is not copied.",
          ),
    ),
    ...(zones.length > 0 || account !== null
      ? []
      : [
          note(
            "zone",
            "EDGE_SHIELD_ZONES is not set here, so no zone was asked for.",
            "Set it to that of the service.",
          ),
        ]),
    "failed" in offsetMs
      ? note("clock", `The platform's clock is not known: ${offsetMs.failed}.`)
      : judgeOffset("the platform", offsetMs.value),
  ];
}

function judgeKey(roles: PlatformFacts["roles"], host: string, of: string): Finding[] {
  if ("failed" in roles)
    return [
      warning(
        "platform",
        `The platform at ${host} did not list ${of === "" ? "the account's keys" : `the keys${of}`}: ${roles.failed}.`,
        "Correct that. If the key may not list keys and the zones below are fine, nothing is to be done.",
      ),
    ];
  const { value } = roles;
  if (value === null)
    return [
      warning(
        "platform",
        `The platform at ${host} accepts the key${of}, but its list of keys does not have the key.`,
        "Check whether the key belongs to another account, or has been deleted.",
      ),
    ];
  const named = value.length === 0 ? "no role" : value.join(", ");
  return [ok("platform", `The platform at ${host} accepts the key${of}; its roles: ${named}.`)];
}

function judgeChannels({ channels, configFile, consoleUrl }: DoctorFacts): Finding[] {
  const from = configFile === null ? "no configuration file" : configFile;
  const isTerminalOnly = channels.every(({ kind }) => kind === "terminal");
  return [
    ...(isTerminalOnly
      ? [
          warning(
            "channels",
            `Alerts go to the terminal only (${from}).`,
            "Add a channel (docs/routing.md), so that people on call are notified.",
          ),
        ]
      : consoleUrl === null
        ? [
            note(
              "channels",
              "Messages have no link to the console, because its address is not known.",
              "Set LONGWATCH_PUBLIC_URL to the address under which people open the console.",
            ),
          ]
        : [ok("channels", `Messages link to the console at ${consoleUrl}.`)]),
    ...channels.map(judgeChannel),
  ];
}

function judgeChannel({ name, kind, failed }: ChannelFacts): Finding {
  const channel = `Channel ${name} (${kind})`;
  return failed === null
    ? ok("channels", `${channel} renders the test message; nothing was sent.`)
    : problem("channels", `${channel} cannot be opened: ${failed}.`, "Correct its settings.");
}

function judgeIssuer(issuer: DoctorFacts["issuer"]): Finding[] {
  if (issuer === null) return [];
  if ("value" in issuer)
    return [ok("sign-in", `The issuer ${issuer.value} answers; people can sign in there.`)];
  const next = "Correct sign_in in the configuration file (docs/sign-in.md). Keys work meanwhile.";
  return [problem("sign-in", `Nobody can sign in at the issuer: ${issuer.failed}.`, next)];
}

function judgeKnown(tooMany: DoctorFacts["tooManyKnown"]): Finding[] {
  if (tooMany === null) return [];
  return [
    warning(
      "known sources",
      `There are ${tooMany.count} known sources: ${tooMany.rule}.`,
      "Remove some of detection.known_sources or with known remove. Until then known add refuses others there.",
    ),
  ];
}

/** A sink cannot be asked without sending events, so the service's last attempt counts. */
function judgeDestination({ destination, isUsed }: DoctorFacts["destinations"][number]): Finding {
  return isUsed
    ? ok("forward", `Destination ${destination} accepts events, and no hour differs.`)
    : note(
        "forward",
        `Nothing was forwarded to destination ${destination} yet.`,
        "Start the service if it does not run.",
      );
}

function judgeFiles(files: readonly FileFacts[]): Finding[] {
  const findings = files.flatMap(({ file, holds, mode, isSecret }) => {
    const forbidden = isSecret ? 0o077 : 0o022;
    if ((mode & forbidden) === 0) return [];
    const who = `Others may ${isSecret ? "read" : "change"} ${file} (${holds}, mode ${mode.toString(8)}).`;
    return [warning("files", who, `Run chmod ${isSecret ? "go=" : "go-w"} on it.`)];
  });
  if (findings.length > 0) return findings;
  return files.length === 0
    ? []
    : [ok("files", `Only their owner may read secrets and change settings: ${many(files.length, "file")}.`)];
}

function judgeLoose(loose: LooseFacts | null): Finding[] {
  if (loose === null) return [];
  const [first] = loose.entries;
  if (first === undefined)
    return [ok("files", `Only its owner may use the data folder ${loose.folder} and what is in it.`)];
  return [
    warning(
      "files",
      `Others may use ${many(loose.entries.length, "entry", "entries")} of the data folder ${loose.folder}, such as ${first.path} (mode ${first.mode.toString(8)}).`,
      "Restart the service, which corrects it; or run chmod go= on each as its owner.",
    ),
  ];
}

const SOON_MS = 14 * DAY_MS;

function judgeAdminKey(leftMs: number | null | undefined): Finding[] {
  if (leftMs === undefined) return [];
  if (leftMs !== null && leftMs < SOON_MS)
    return [
      warning(
        "keys",
        leftMs <= 0
          ? "No admin key is valid, so nobody can manage keys or use a sign-in link of an admin."
          : `The last admin key expires in ${many(Math.ceil(leftMs / DAY_MS), "day")}.`,
        "Make another: npm run -s longwatch -- keys create --name admin --role admin",
      ),
    ];
  return [ok("keys", "An admin key is valid for at least 14 days.")];
}

function judgeService(service: ServiceLife | null, version: string): Finding[] {
  if (service === null) return [];
  const alive = service.replicas.filter(({ state }) => state === "alive");
  const findings: Finding[] = [];
  const versions = [...new Set(alive.map((replica) => replica.version))].sort();
  if (versions.length > 1)
    findings.push(
      warning(
        "service",
        `Live processes have different versions: ${versions.join(", ")}.`,
        "Finish the upgrade: restart the older ones.",
      ),
    );
  else if (versions.length === 1 && versions[0] !== version)
    findings.push(
      note(
        "service",
        `The service runs version ${versions[0]}, this command is ${version}.`,
        "Use the same version.",
      ),
    );
  const silent = service.replicas.filter(({ state }) => state === "silent");
  if (silent.length > 0)
    findings.push(
      note(
        "service",
        `${many(silent.length, "process", "processes")} ended without a stop: ${silent.map(({ host, pid }) => `${host} ${pid}`).join(", ")}.`,
        "Look at the log of that machine. The entry disappears by itself.",
      ),
    );
  if (findings.length > 0 || service.missingRoles.length > 0) return findings;
  return [
    ok(
      "service",
      `${many(alive.length, "process", "processes")} alive, version ${version}, every role present.`,
    ),
  ];
}
