import { Command, Option } from "commander";
import { SUMMARIES } from "../commands.ts";
import { addGroupHelp, listAsTyped } from "../terminal/help.ts";
import { addApiKeys } from "./api-keys.ts";
import { addApps } from "./apps.ts";
import { addContainers } from "./containers.ts";
import { addSubcommand, type Connection, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { createProcessIo, type EdgeIo } from "./edge-io.ts";
import { addEventsExport } from "./events-export.ts";
import { addEventsList } from "./events-list.ts";
import { addEventsSearch } from "./events-search.ts";
import { addHostname } from "./hostname.ts";
import { addRules } from "./rules.ts";
import { writeJson } from "./write-json.ts";

/**
 * `longwatch edge`: calls the platform's eleven operations. Prints JSON (CSV for export) on stdout. Exit code 1 if a call
 * fails, 2 if the command line has a mistake. The settings are read only after the command line is valid.
 */
export function edgeCommand(getConnection: () => Connection, io: EdgeIo = createProcessIo()): Command {
  const edge = new Command("edge")
    .description(SUMMARIES.edge)
    .addOption(
      new Option(
        "--timeout <seconds>",
        "total time per call; an export has no limit unless this is given",
      ).default("30", "30"),
    )
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2));
  // Must come before the subcommands, because each inherits it.
  listAsTyped(edge);
  const setup = { getConnection, io };
  addApiKeys(edge, setup);
  addHostname(edge, setup);
  addDnsZone(edge, setup);
  addContainers(edge, setup);
  addApps(edge, setup);
  addVolumes(edge, setup);
  addEvents(edge, setup);
  addRules(edge, setup);
  for (const group of edge.commands) addGroupHelp(group, `edge ${group.name()}`);
  return addGroupHelp(edge);
}

/** `dns-zone check`. */
function addDnsZone(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("dns-zone").description("DNS zones.");
  addSubcommand(group, "check", "Show whether a DNS zone name is available.", [
    "dns-zone check --name example.test",
  ])
    .option("--name <name>", "zone name (required)")
    .action(
      edgeAction<{ name?: string }>(setup, async (flags, { read, io, call }) => {
        const name = read.required("name", flags.name, "a zone name");
        await call(async (client) => {
          if (name !== undefined) await writeJson(io.stdout, await client.checkDnsZone({ Name: name }));
        });
      }),
    );
}

/** `events list`, `events search` and `events export`. */
function addEvents(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("events").description("Event logs of a shield zone, the last 72 hours.");
  addEventsList(group, setup);
  addEventsSearch(group, setup);
  addEventsExport(group, setup);
}

/** `volumes delete`. */
function addVolumes(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("volumes").description("Volumes of container applications.");
  addSubcommand(
    group,
    "delete",
    "Delete all instances of a volume with their data. Every instance must be detached.",
    ["volumes delete --app a1B2c3D4e5F6g7H --volume data"],
  )
    .option("--app <id>", "application (required)")
    .option("--volume <id>", "volume template (required)")
    .action(
      edgeAction<{ app?: string; volume?: string }>(setup, async (flags, { read, io, call }) => {
        const appId = read.required("app", flags.app, "an application's id");
        const volumeId = read.required("volume", flags.volume, "a volume template's id");
        await call(async (client) => {
          if (appId === undefined || volumeId === undefined) return;
          await writeJson(io.stdout, await client.deleteVolumeInstances({ appId, volumeId }));
        });
      }),
    );
}
