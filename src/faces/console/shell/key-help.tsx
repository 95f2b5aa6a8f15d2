import { Kbd, Modal, Table } from "@mantine/core";
import { MARKS } from "#model/kinds.ts";
import { NAVIGATION } from "../routes.tsx";

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
export default function KeyHelp({ onClose }: { readonly onClose: () => void }) {
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
