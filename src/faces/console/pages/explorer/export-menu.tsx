import { Button, Menu } from "@mantine/core";
import { useState } from "react";
import { send } from "../../api/client.ts";
import { toProblem } from "../../api/problem.ts";
import { type EventScope, eventsPath, toBody } from "../../api/search.ts";
import { Icon } from "../../look/icons.tsx";
import { formatBytes } from "../../look/words.ts";

const FORMATS = { csv: "text/csv", ndjson: "application/x-ndjson" } as const;
type Format = keyof typeof FORMATS;

/** Saves exactly the events that the page shows: the same span, text and filters. One file per zone. */
export function ExportMenu({ scope }: { readonly scope: EventScope }) {
  const [note, setNote] = useState<string | null>(null);
  const run = async (format: Format) => {
    try {
      for (const { id } of scope.zones) {
        const bytes = await save(id, format, scope);
        setNote(`${formatBytes(bytes)} saved`);
      }
    } catch (thrown) {
      setNote(toProblem(thrown).message.slice(0, 120));
    }
    setTimeout(() => setNote(null), 6_000);
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<Icon name="download" size={13} />}
          rightSection={<Icon name="down" size={12} />}
        >
          <span aria-live="polite">{note ?? "Export"}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => void run("csv")}>CSV for spreadsheets</Menu.Item>
        <Menu.Item onClick={() => void run("ndjson")}>NDJSON with unchanged texts</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

async function save(zoneId: number, format: Format, scope: EventScope): Promise<number> {
  const response = await send(`${eventsPath(zoneId)}/export`, {
    method: "POST",
    body: toBody(scope),
    headers: { accept: FORMATS[format] },
  });
  const blob = await response.blob();
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = `event-logs-${zoneId}.${format}`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
  return blob.size;
}
