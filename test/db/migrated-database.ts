import { createDatabase, type Database } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { createTestDatabase } from "../support/database.ts";

export interface MigratedDatabase extends Database {
  readonly url: string;
  /** What the pool reported of dying connections. */
  readonly errors: Error[];
  drop(): Promise<void>;
}

export async function createMigratedDatabase(): Promise<MigratedDatabase> {
  const empty = await createTestDatabase();
  const { url } = empty;
  await migrate({ url });
  const errors: Error[] = [];
  const onError = (error: Error) => void errors.push(error);
  const database = createDatabase({ url, max: 12, applicationName: "longwatch test", onError });
  return {
    ...database,
    url,
    errors,
    drop: async () => {
      await database.close();
      await empty.drop();
    },
  };
}
