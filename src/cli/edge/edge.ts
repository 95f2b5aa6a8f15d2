import { Command, Option } from "commander";
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
 * `longwatch edge`: the platform's eleven operations from the shell. JSON (CSV for export) on stdout; exit code 1 when a
 * call fails, 2 when what was typed cannot be sent. Settings are asked for only once the command line is in order.
 */
export function edgeCommand(getConnection: () => Connection, io: EdgeIo = createProcessIo()): Command {
  const edge = new Command("edge")
    .description("Call the edge platform's API.")
    .addOption(
      new Option("--timeout <seconds>", "total time per call; for an export only if given").default(
        "30",
        "30",
      ),
    )
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2));
  // Before any subcommand: each takes it over.
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
