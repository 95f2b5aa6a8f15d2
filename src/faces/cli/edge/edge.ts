import { Command, Option } from "commander";
import { SUMMARIES } from "../summaries.ts";
import { addGroupHelp, listAsTyped } from "../terminal/shape-help.ts";
import { addApiKeys } from "./api-keys.ts";
import { addApps } from "./apps.ts";
import { addContainers } from "./containers.ts";
import { addDnsZone } from "./dns-zone.ts";
import type { Connection } from "./edge-action.ts";
import { createProcessIo, type EdgeIo } from "./edge-io.ts";
import { addEvents } from "./events.ts";
import { addHostname } from "./hostname.ts";
import { addRules } from "./rules.ts";
import { addVolumes } from "./volumes.ts";

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
