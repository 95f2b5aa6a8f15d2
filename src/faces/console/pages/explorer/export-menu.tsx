import type { ExportFormName } from "#model/kinds.ts";
import { send } from "../../api/client.ts";
import { toProblem } from "../../api/problem.ts";
import { type EventScope, eventsPath, toBody } from "../../api/search.ts";
import { ChoiceMenu } from "../../components/choice-menu.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatBytes } from "../../look/words.ts";
import { useNote } from "../../state/note.ts";

/** The ending of each format's file. Parquet is for programs. */
const ENDINGS = { csv: "csv", ndjson: "ndjson", ocsf: "ocsf.ndjson" } as const satisfies Partial<
  Record<ExportFormName, string>
>;
type Format = keyof typeof ENDINGS;

/** Saves exactly the events that the page shows: the same span, text and filters. One file per zone. */
export function ExportMenu({ scope }: { readonly scope: EventScope }) {
  const [note, say] = useNote(6_000);
  const run = async (format: Format) => {
    try {
      for (const { id } of scope.zones) say(`${formatBytes(await save(id, format, scope))} saved`);
    } catch (thrown) {
      say(toProblem(thrown).message.slice(0, 120));
    }
  };
  const items = {
    "CSV for spreadsheets": () => void run("csv"),
    "NDJSON with unchanged texts": () => void run("ndjson"),
    "OCSF 1.8, without records": () => void run("ocsf"),
  };
  return (
    <ChoiceMenu word={note ?? "Export"} leftSection={<Icon name="download" size={13} />} items={items} />
  );
}

async function save(zoneId: number, format: Format, scope: EventScope): Promise<number> {
  const response = await send(`${eventsPath(zoneId)}/export`, {
    method: "POST",
    body: { ...toBody(scope), format },
  });
  const blob = await response.blob();
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = `event-logs-${zoneId}.${ENDINGS[format]}`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
  return blob.size;
}
