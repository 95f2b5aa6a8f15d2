import type { Command } from "commander";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { writeJson } from "./write-json.ts";

/** `volumes delete`. */
export function addVolumes(edge: Command, setup: EdgeSetup): void {
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
