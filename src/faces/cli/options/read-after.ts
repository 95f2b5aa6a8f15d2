import type { Config } from "#config/config.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

/** Reads the settings. Mistakes of the command line are reported before mistakes of the settings. */
export function readAfter(read: FlagReader, readConfig: () => Config): Config {
  try {
    return readConfig();
  } catch (thrown) {
    read.finish();
    throw thrown;
  }
}
