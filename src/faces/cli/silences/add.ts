import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Database, Queryable } from "#db/client.ts";
import { toPlanned } from "#faces/http/routes/v1/silences.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { asCalled } from "#lib/own-command.ts";
import { showTime } from "#lib/show-time.ts";
import { SEVERITIES, SILENCE_SCOPES, type SilenceScope, SUBJECT_KINDS } from "#model/kinds.ts";
import { whyUnsilenceable } from "#operations/act-on-alerts.ts";
import { type AddedSilence, addSilence, matchAlert } from "#operations/act-on-silence.ts";
import type { Matchers } from "#stages/alerting/silence.ts";
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
  npm run -s longwatch -- silences add --alert 17 --for 30m --reason "known" --by alice
  npm run -s longwatch -- silences add --alert 17,18 --scope rule --for 30m --reason "known"`;

type Flags = SilenceFlags & { readonly by?: string; readonly json?: true };

export function addCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("add", "Mute alerts for a while.", HELP, io)
    .option("--zone <ids>", "mute alerts of these shield zones", gather)
    .option("--rule <id>", "mute alerts of this rule or family (942*); repeatable", gather)
    .option("--severity <names>", `mute alerts of these severities: ${SEVERITIES.join(", ")}`, gather)
    .option("--kind <names>", `mute alerts of these kinds: ${SUBJECT_KINDS.join(", ")}`, gather)
    .option("--ip <addresses>", "mute alerts about these addresses or networks", gather)
    .option("--asn <numbers>", "mute alerts about these networks (AS64500)", gather)
    .option("--country <codes>", "mute alerts about these countries", gather)
    .option("--ja4 <fingerprints>", "mute alerts about these fingerprints", gather)
    .option("--url <paths>", "mute alerts about these paths; a path may end in *", gather)
    .option("--alert <ids>", "mute what these alerts are about: see --scope", gather)
    .option(
      "--scope <what>",
      `with --alert: ${SILENCE_SCOPES.join(", ")} (default: the address or network that most events share, else the rule; for a flood of rules, the zone)`,
    )
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
        const shown = added.map((one) => toPlanned(one.id, one, null));
        if (flags.json === true) await writeJson(io.stdout, shown.length === 1 ? shown[0] : { items: shown });
        else await writeOut(io.stdout, added.map(describe).join(""));
      }),
    );
}

async function add(
  database: Database,
  { alertIds, scope, ...wanted }: ReadSilence,
  by: string,
  nowMs: number,
): Promise<AddedSilence[]> {
  const { db } = database;
  const all =
    alertIds === null
      ? [wanted.matchers]
      : await Promise.all(alertIds.map((id) => readSubject(db, id, scope)));
  const distinct = new Map(all.map((matchers) => [JSON.stringify(matchers), matchers]));
  const added: AddedSilence[] = [];
  for (const matchers of distinct.values())
    added.push(await addSilence(database, { ...wanted, matchers, by, nowMs }));
  return added;
}

async function readSubject(
  db: Queryable,
  alertId: number,
  scope: SilenceScope | undefined,
): Promise<Matchers> {
  const matchers = await matchAlert(db, alertId, scope === undefined ? {} : { scope });
  if (matchers === "unknown") throw new NotFoundError(`there is no alert ${alertId}`);
  if (typeof matchers === "string")
    throw new UsageError([`--alert ${alertId}: ${whyUnsilenceable(alertId, matchers, scope)}`]);
  return matchers;
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
