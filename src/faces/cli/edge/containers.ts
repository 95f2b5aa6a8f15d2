import type { Command } from "commander";
import { ContainerTemplateRequest } from "#adapters/edge/contract/containers.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import type { FlagReader } from "./flag-reader.ts";
import { readBodyFile } from "./read-body-file.ts";
import { writeJson } from "./write-json.ts";

interface ImageFlags {
  readonly name?: string;
  readonly imageName?: string;
  readonly imageNamespace?: string;
  readonly imageTag?: string;
  readonly imageRegistryId?: string;
}

interface Flags extends ImageFlags {
  readonly app?: string;
  readonly body?: string;
  readonly env?: readonly string[];
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function readVariables(read: FlagReader, pairs: readonly string[]): { name: string; value: string }[] {
  return pairs.flatMap((pair) => {
    const at = pair.indexOf("=");
    return at < 1
      ? (read.wrong("env", pair, "NAME=value") ?? [])
      : { name: pair.slice(0, at), value: pair.slice(at + 1) };
  });
}

/** `containers add`. */
export function addContainers(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("containers").description("Container templates of applications.");
  addSubcommand(group, "add", "Add a container template to an application.", [
    "containers add --app a1B2c3D4e5F6g7H --name web --image-name nginx --image-namespace library --image-tag 1.29 --image-registry-id 12",
    "containers add --app a1B2c3D4e5F6g7H --body container.json",
  ])
    .option("--app <id>", "application (required)")
    .option("--name <name>", "container name")
    .option("--image-name <name>", "image name")
    .option("--image-namespace <name>", "image namespace")
    .option("--image-tag <tag>", "image tag")
    .option("--image-registry-id <id>", "image registry")
    .option("--env <name=value>", "environment variable (repeatable)", collect)
    .option("--body <file>", "the whole request as JSON instead of flags; - for standard input")
    .action(
      edgeAction<Flags>(setup, async ({ app, body, env, ...image }, { read, io, call }) => {
        const appId = read.required("app", app, "an application's id");
        const variables = readVariables(read, env ?? []);
        const { name, imageName, imageNamespace, imageTag, imageRegistryId } = image;
        const typed = {
          name,
          imageName,
          imageNamespace,
          imageTag,
          imageRegistryId,
          ...(variables.length === 0 ? {} : { environmentVariables: variables }),
        };
        const hasFlags = Object.values(typed).some((value) => value !== undefined);
        if (body !== undefined && hasFlags)
          read.wrong("body", body, "given without the flags of the container");
        const given = body === undefined ? typed : await readBodyFile(read, body, io.stdin);
        const check = body === undefined ? read.check : read.checkBody;
        const request = given === undefined ? undefined : check(ContainerTemplateRequest, given);
        await call(async (client) => {
          if (appId === undefined || request === undefined) return;
          await writeJson(io.stdout, await client.addContainer({ appId, request }));
        });
      }),
    );
}
