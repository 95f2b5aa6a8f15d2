import type { Config } from "#config/config.ts";
import type { StoreIo } from "../store/store-command.ts";
import { askLocally } from "./ask-locally.ts";
import { askRemotely } from "./ask-remotely.ts";
import type { AskOperation } from "./operation-command.ts";

/** Returns how operations are run: on the service that the configuration names, else on the database. */
export function pickAsk(
  config: Config,
  { clock }: Pick<StoreIo, "clock">,
  actor: string | null,
): AskOperation {
  return config.remote === null ? askLocally({ config, clock, actor }) : askRemotely(config.remote);
}
