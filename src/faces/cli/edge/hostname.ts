import type { Command } from "commander";
import { HostnameKeyTypeRequest, KEY_TYPES } from "#adapters/edge/contract/account.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { readBodyFile } from "./read-body-file.ts";
import { writeJson } from "./write-json.ts";

interface Flags {
  readonly pullZone?: string;
  readonly hostname?: string;
  readonly keyType?: string;
  readonly body?: string;
}

const NAMES: Record<string, number> = { ...KEY_TYPES, "0": KEY_TYPES.ecdsa, "1": KEY_TYPES.rsa };

/** `hostname set-key-type`. */
export function addHostname(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("hostname").description("Hostnames of pull zones.");
  addSubcommand(group, "set-key-type", "Change the private key type of a hostname's certificate.", [
    "hostname set-key-type --pull-zone 1001 --hostname www.example.test --key-type ecdsa",
    "hostname set-key-type --pull-zone 1001 --body key-type.json",
  ])
    .option("--pull-zone <id>", "pull zone (required)")
    .option("--hostname <name>", "hostname")
    .option("--key-type <type>", "ecdsa (0) or rsa (1)")
    .option("--body <file>", "the request as JSON {Hostname, KeyType} instead of flags; - for standard input")
    .action(
      edgeAction<Flags>(setup, async (flags, { read, io, call }) => {
        const pullZoneId = read.id("pull-zone", flags.pullZone, "a pull zone's number");
        const request = await readRequest(flags);
        await call(async (client) => {
          if (pullZoneId === undefined || request === undefined) return;
          await client.setHostnameKeyType({ pullZoneId, request });
          await writeJson(io.stdout, request);
        });

        async function readRequest({ hostname, keyType, body }: Flags) {
          if (body === undefined) {
            const name = read.required("hostname", hostname, "a hostname");
            const type = NAMES[keyType?.toLowerCase() ?? ""];
            if (type === undefined) read.wrong("key-type", keyType, "ecdsa (0) or rsa (1)");
            return read.check(HostnameKeyTypeRequest, { Hostname: name, KeyType: type }, [
              "Hostname",
              "KeyType",
            ]);
          }
          if (hostname !== undefined) read.wrong("hostname", hostname, "left out if --body is given");
          if (keyType !== undefined) read.wrong("key-type", keyType, "left out if --body is given");
          const given = await readBodyFile(read, body, io.stdin);
          return given === undefined ? undefined : read.checkBody(HostnameKeyTypeRequest, given);
        }
      }),
    );
}
