import { createListPageWorkers } from "#jobs/ingest/list-page-workers.ts";

/** The thread of every test in this process: to start one costs more than the pages of most tests. It ends with the process. */
export const { digest: digestListPage } = createListPageWorkers({ threads: 1 });
