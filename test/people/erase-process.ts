import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";

/** `longwatch erase` in a process of its own: node erase-process.ts <environment as JSON> <now> <argument>.... */
const [environment = "{}", now = "", ...args] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
const given = JSON.parse(environment) as Record<string, string>;
const ran = await runStoreCommand(eraseCommand, given, args, { now: Number(now) });
process.send?.(ran, () => process.exit(0));
