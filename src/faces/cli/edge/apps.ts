import type { Command } from "commander";
import { ApplicationUpdateRequest } from "#adapters/edge/contract/containers.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { readBodyFile } from "./read-body-file.ts";
import { writeJson } from "./write-json.ts";

interface Flags {
  readonly app?: string;
  readonly name?: string;
  readonly runtimeType?: string;
  readonly min?: string;
  readonly max?: string;
  readonly regions?: string;
  readonly body?: string;
}

/** `apps update`. */
export function addApps(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("apps").description("Container applications.");
  addSubcommand(
    group,
    "update",
    "Replace the whole configuration of an application. The platform resets every member that the request leaves out, so use --body unless the flags cover everything.",
    [
      "apps update --app a1B2c3D4e5F6g7H --body app.json",
      "apps update --app a1B2c3D4e5F6g7H --body - < app.json",
      "apps update --app a1B2c3D4e5F6g7H --name shop --min 1 --max 3 --regions DE,UK",
    ],
  )
    .option("--app <id>", "application (required)")
    .option("--name <name>", "application name")
    .option("--runtime-type <type>", "shared or reserved")
    .option("--min <number>", "smallest number of instances")
    .option("--max <number>", "largest number of instances")
    .option("--regions <ids>", "allowed regions, separated by commas")
    .option("--body <file>", "the whole configuration as JSON instead of flags; - for standard input")
    .action(
      edgeAction<Flags>(setup, async ({ app, body, ...flags }, { read, io, call }) => {
        const appId = read.required("app", app, "an application's id");
        const typed = {
          name: flags.name,
          ...(flags.runtimeType === undefined ? {} : { runtimeType: flags.runtimeType }),
          autoScaling: {
            min: read.integer("min", flags.min, "a whole number"),
            max: read.integer("max", flags.max, "a whole number"),
          },
          regionSettings: flags.regions === undefined ? {} : { allowedRegionIds: flags.regions.split(",") },
        };
        if (body !== undefined && Object.keys(flags).length > 0) {
          read.wrong("body", body, "given without the flags of the configuration");
        }
        const given = body === undefined ? typed : await readBodyFile(read, body, io.stdin);
        const check = body === undefined ? read.check : read.checkBody;
        const request = given === undefined ? undefined : check(ApplicationUpdateRequest, given);
        await call(async (client) => {
          if (appId === undefined || request === undefined) return;
          await writeJson(io.stdout, await client.updateApplication({ appId, request }));
        });
      }),
    );
}
