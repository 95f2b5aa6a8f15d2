import "@mantine/spotlight/styles.css";
import { Kbd, Modal, Table, useMantineColorScheme } from "@mantine/core";
import { createSpotlight, Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { MARKS } from "#model/kinds.ts";
import { NAVIGATION } from "../routes.tsx";
import { SPANS, type SpanName, useSpan } from "../state/span.ts";
import { usePageLink } from "../state/url-state.ts";
import { useZones, zoneTitle } from "../state/zones.ts";
import { useSearchFor } from "./header.tsx";

const [store, palette] = createSpotlight();

interface Props {
  readonly onClose: () => void;
  readonly onHelp: () => void;
}

/** Every page, zone and span by its name; and a search for what was typed. */
export default function Palette({ onClose, onHelp }: Props) {
  const [, navigate] = useLocation();
  const link = usePageLink();
  const { all, choose } = useZones();
  const span = useSpan();
  const { toggleColorScheme } = useMantineColorScheme();
  const [query, setQuery] = useState("");
  useEffect(() => palette.open(), []);
  const typed = query.trim();
  const searchFor = useSearchFor();
  const openAlert = () => navigate(link(`/alerts/${typed}`));
  const actions: SpotlightActionData[] = [
    ...NAVIGATION.map(({ path, title }) => ({
      id: path,
      label: `Go to ${title}`,
      onClick: () => navigate(link(path)),
    })),
    ...all.map((zone) => ({
      id: `zone ${zone.id}`,
      label: `Show only ${zoneTitle(zone)}`,
      keywords: String(zone.id),
      onClick: () => choose(String(zone.id)),
    })),
    { id: "all", label: "Show all zones", onClick: () => choose("") },
    ...(Object.keys(SPANS) as SpanName[]).map((name) => ({
      id: name,
      label: `Show the last ${name}`,
      onClick: () => span.choose(name),
    })),
    { id: "theme", label: "Change between dark and light", onClick: () => toggleColorScheme() },
    { id: "help", label: "Show the keys", onClick: () => setTimeout(onHelp) },
  ];
  // Last: the name of a command is more likely meant.
  if (typed !== "")
    actions.push({
      id: "search",
      label: `Search events for "${typed}"`,
      keywords: typed,
      onClick: () => void searchFor(typed),
    });
  if (/^\d{1,15}$/.test(typed))
    actions.push({ id: "alert", label: `Open alert ${typed}`, keywords: typed, onClick: openAlert });
  return (
    <Spotlight
      store={store}
      attributes={{ content: { "aria-label": "Command palette" } }}
      actions={actions}
      shortcut={null}
      query={query}
      onQueryChange={setQuery}
      onSpotlightClose={onClose}
      limit={12}
      nothingFound="No command has this name."
      searchProps={{ placeholder: "Page, zone, span, or a text to search for", "aria-label": "Command" }}
    />
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search events"],
  ["Ctrl K", "command palette"],
  ["?", "this help"],
  ...NAVIGATION.map(({ nav, title }) => [`g ${nav.key}`, `go to ${title}`] as const),
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["Esc", "close"],
  ["a", "acknowledge the alert"],
  ["s", "silence the alert"],
  ...MARKS.map((mark, index) => [`${index + 1}`, `mark the alert as ${mark}`] as const),
];

/** The list of keys and of gestures that the screen does not show. */
export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keys">
      <Table aria-label="Keys">
        <Table.Tbody>
          {KEYS.map(([keys, effect]) => (
            <Table.Tr key={keys}>
              <Table.Td>
                {keys.split(" ").map((key) => (
                  <Kbd key={key} mr={4}>
                    {key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Td>{effect}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <p className="lw-dim">
        In a chart: drag to narrow the span, double click to widen it. On a value: click to filter for it, Alt
        and click to filter it out.
      </p>
    </Modal>
  );
}
