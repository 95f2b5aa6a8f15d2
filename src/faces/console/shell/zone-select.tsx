import { Select } from "@mantine/core";
import { useZones, zoneTitle } from "../state/zones.ts";

/** All zones, one zone, or the zones with a label. The choice is in the address and holds on every page. */
export function ZoneSelect() {
  const { all, chosen, choose } = useZones();
  const labels = [
    ...new Set(all.flatMap((zone) => Object.entries(zone.labels).map((pair) => pair.join("=")))),
  ];
  const data = [
    { value: "", label: all.length > 1 ? `all ${all.length} zones` : "all zones" },
    { group: "Zone", items: all.map((zone) => ({ value: String(zone.id), label: name(zone) })) },
    ...(labels.length === 0
      ? []
      : [{ group: "Label", items: labels.map((label) => ({ value: label, label })) }]),
  ];
  return (
    <Select
      aria-label="Zone"
      size="xs"
      w={{ sm: 150 }}
      data={data}
      value={chosen}
      allowDeselect={false}
      searchable={all.length > 8}
      maxDropdownHeight={320}
      comboboxProps={{ width: "max-content", position: "bottom-start" }}
      onChange={(value) => choose(value ?? "")}
    />
  );
}

function name(zone: Parameters<typeof zoneTitle>[0]): string {
  return zone.name === null ? zoneTitle(zone) : `${zone.name} (${zone.id})`;
}
