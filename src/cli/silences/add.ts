import type { Command } from "commander";
import type { Database, Queryable } from "../../../db/client.ts";
import { type Matchers } from "../../alerting/silence.ts";
import type { Config } from "../../config/config.ts";
import { toPlanned } from "../../http/routes/v1/silences.ts";
import { UsageError } from "../../lib/errors.ts";
import { asCalled } from "../../lib/own-command.ts";
import { many } from "../../lib/progress-bar.ts";
import { showTime } from "../../lib/show-time.ts";
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
Held back are alerts that match every option that is given; of one option any value is enough. A resolve is told all the
same to whoever was told of the firing, and Longwatch's alerts about itself are held back by --kind self alone. Whoever
was not told hears of what still goes on when the silence ends.

Examples:
  npm run -s longwatch -- silences add --zone 101 --rule 942100 --for 2h --reason "load test"
  npm run -s longwatch -- silences add --rule '942*' --severity info,warning --for 1d --reason "new rule set"
  npm run -s longwatch -- silences add --alert 17 --for 30m --reason "known" --by alice`;

type Flags = SilenceFlags & { readonly by?: string; readonly json?: true };

export function addCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("add", "Keep alerts from the channels for a while.", HELP, io)
    .option("--zone <ids>", "of these shield zones", gather)
    .option("--rule <id>", "of this rule, or family (942*); may be given more than once", gather)
    .option("--severity <names>", "of these severities: info, warning, error, critical", gather)
    .option("--kind <names>", "of these kinds: spike, new-rule, self", gather)
    .option("--alert <id>", "of the zone and the rule of this alert; of a flood, of its zone")
    .option("--for <duration>", "how long from now: 30m, 2h, 7d (needed)")
    .option("--reason <text>", "why (needed)")
    .option("--by <name>", "who does it (default: who runs this)")
    .option("--json", "as JSON, as POST /api/v1/silences answers")
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
        `--alert ${alertId} is of Longwatch about itself: such alerts are held back by --kind self alone`,
      ]);
    case "many-zones":
      throw new UsageError([`--alert ${alertId} is of rules in several zones: use --zone`]);
    case "family":
      throw new UsageError([
        `--alert ${alertId} is of a rule that ends in *, which means a family: use --zone`,
      ]);
    default:
      return matchers;
  }
}

function describe({ id, expiresAt, matchers, alertIds }: AddedSilence): string {
  const held =
    alertIds.length === 0
      ? "It holds back none of the alerts there are now."
      : `It holds back ${many(alertIds.length, "alert")} now: ${alertIds
          .slice(0, 20)
          .map((one) => `#${one}`)
          .join(", ")}${alertIds.length > 20 ? ", ..." : ""}.`;
  return [
    `silence #${id} until ${showTime(expiresAt)} UTC: ${describeMatchers(matchers)}\n`,
    asCalled(`${held} To end it: npm run -s longwatch -- silences expire ${id}\n`),
  ].join("");
}
