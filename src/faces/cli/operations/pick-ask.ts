import type { Config } from "#config/config.ts";
import type { AskOperation } from "#operations/operation.ts";
import type { StoreIo } from "../store/store-command.ts";

/**
 * Returns how operations are run: on the service that the configuration names, else on the database. Either way is loaded
 * for the first operation, so that help and mistakes need neither the HTTP client nor the code of the searches. When
 * `stopped` aborts, a request to the service ends.
 */
export function pickAsk(
  config: Config,
  { clock }: Pick<StoreIo, "clock">,
  actor: string | null,
  stopped?: AbortSignal,
): AskOperation {
  return async (operation, input) => {
    if (config.remote !== null) {
      const { askRemotely } = await import("./ask-remotely.ts");
      return askRemotely(config.remote, stopped)(operation, input);
    }
    const { askLocally } = await import("./ask-locally.ts");
    return askLocally({ config, clock, actor })(operation, input);
  };
}
