import type { Command } from "commander";
import type { Database, Queryable } from "../../../db/client.ts";
import { type Matchers } from "../../alerting/silence.ts";
import type { Config } from "../../config/config.ts";
import { toPlanned } from "../../http/routes/v1/silences.ts";
import { UsageError } from "../../lib/errors.ts";
import { many } from "../../lib/format.ts";
import { asCalled } from "../../lib/own-command.ts";
import { showTime } from "../../lib/show-time.ts";
import { SUBJECT_KINDS } from "../../model/kinds.ts";
import { type AddedSilence, addSilence, matchAlert } from "../../operations/act-on-silence.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor } from "../options/read-actor.ts";
import { gather } from "../options/read-list.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeMatchers } from "./describe-silence.ts";
import { type ReadSilence, readSilence, type SilenceFlags } from "./read-silence.ts";

const HELP = `
A silence mutes alerts that match every given option. Of one option, any value is enough. The channels that were notified
of an alert are still notified when it resolves. Only --kind self mutes alerts of Longwatch about itself. When the
silence ends, Longwatch notifies the channels of alerts that still fire and were muted.

Examples:
  npm run -s longwatch -- silences add --zone 101 --rule 942100 --for 2h --reason "load test"
  npm run -s longwatch -- silences add --rule '942*' --severity info,warning --for 1d --reason "new rule set"
  npm run -s longwatch -- silences add --alert 17 --for 30m --reason "known" --by alice`;

type Flags = SilenceFlags & { readonly by?: string; readonly json?: true };

export function addCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("add", "Mute alerts for a while.", HELP, io)
    .option("--zone <ids>", "mute alerts of these shield zones", gather)
    .option("--rule <id>", "mute alerts of this rule or family (942*); repeatable", gather)
    .option("--severity <names>", "mute alerts of these severities: info, warning, error, critical", gather)
    .option("--kind <names>", `mute alerts of these kinds: ${SUBJECT_KINDS.join(", ")}`, gather)
    .option("--ip <addresses>", "mute alerts about these addresses or networks", gather)
    .option("--asn <numbers>", "mute alerts about these networks (AS64500)", gather)
    .option("--country <codes>", "mute alerts about these countries", gather)
    .option("--ja4 <fingerprints>", "mute alerts about these fingerprints", gather)
    .option("--url <paths>", "mute alerts about these paths; a path may end in *", gather)
    .option("--alert <id>", "mute the zone and rule of this alert; for a flood of rules, its zone")
    .option("--for <duration>", "duration from now, such as 30m, 2h or 7d (required)")
    .option("--reason <text>", "reason (required)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print the answer of POST /api/v1/silences")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const wanted = readSilence(read, flags);
        const by = readActor(read, flags.by);
        read.finish();
        const config = readConfig();
        const added = await withStore(config, async (database) => {
          await requireZones(database.db, config, wanted.matchers.zone ?? []);
          const nowMs = (await readServiceClock(database, io.clock))();
          return add(database, wanted, by, nowMs);
        });
        if (flags.json === true) await writeJson(io.stdout, toPlanned(added.id, added, null));
        else await writeOut(io.stdout, describe(added));
      }),
    );
}

async function add(
  database: Database,
  { alertId, ...wanted }: ReadSilence,
  by: string,
  nowMs: number,
): Promise<AddedSilence> {
  const matchers = alertId === null ? wanted.matchers : await readSubject(database.db, alertId);
  return addSilence(database, { ...wanted, matchers, by, nowMs });
}

async function readSubject(db: Queryable, alertId: number): Promise<Matchers> {
  const matchers = await matchAlert(db, alertId);
  switch (matchers) {
    case "unknown":
      throw new NotFoundError(`there is no alert ${alertId}`);
    case "about-longwatch":
      throw new UsageError([
        `--alert ${alertId} is an alert of Longwatch about itself; only --kind self mutes such alerts`,
      ]);
    case "many-zones":
      throw new UsageError([`--alert ${alertId} is about rules in several zones; use --zone`]);
    case "family":
      throw new UsageError([
        `--alert ${alertId} is about a rule whose id ends in *, which would mean a family; use --zone`,
      ]);
    default:
      return matchers;
  }
}

function describe({ id, expiresAt, matchers, alertIds, equalIds }: AddedSilence): string {
  const muted =
    alertIds.length === 0
      ? "It mutes no current alert."
      : `It mutes ${many(alertIds.length, "current alert")}: ${alertIds
          .slice(0, 20)
          .map((one) => `#${one}`)
          .join(", ")}${alertIds.length > 20 ? ", ..." : ""}.`;
  const equal = equalIds.map((one) => `#${one}`).join(", ");
  const others = equalIds.length === 1 ? "Silence" : "Silences";
  return [
    `silence #${id} until ${showTime(expiresAt)} UTC: ${describeMatchers(matchers)}\n`,
    asCalled(`${muted} To end it: npm run -s longwatch -- silences expire ${id}\n`),
    equalIds.length === 0
      ? ""
      : `${others} ${equal} with the same matchers ${equalIds.length === 1 ? "stays" : "stay"} in force: alerts are muted until the last one ends.\n`,
  ].join("");
}
