import { colorsTuple, createTheme } from "@mantine/core";

/** The ten shades of a colour, the lightest first. */
const toShades = (hexes: string) => colorsTuple(hexes.split(" "));
const teal = toShades("#e3f7f4 #c6ebe5 #9bdcd2 #6fcdc0 #4cc2b2 #2fa898 #1b8f80 #0d7a6d #086b5f #04544a");
/** The surfaces of the dark theme, from text to the deepest background. */
const dark = toShades("#d9e0e7 #b6c1cb #98a6b3 #74828f #33404c #26313b #19212a #0f151b #0b1015 #070b0f");
const red = toShades("#fdecea #fad2ce #f5aaa3 #f28a81 #ff6b62 #e4483e #cf3328 #b9261c #a01d15 #7d120c");

export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: { light: 7, dark: 4 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: { teal, dark, red },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  headings: { fontWeight: "600" },
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Drawer: {
      defaultProps: { closeButtonProps: { "aria-label": "Close" }, transitionProps: { duration: 0 } },
    },
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    // Named, so that the style of a filled button finds those that name no variant.
    Button: { defaultProps: { size: "compact-sm", variant: "filled" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    TextInput: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    // Within a form's popover: a click on an option outside would close the form.
    Select: { defaultProps: { size: "xs", allowDeselect: false, comboboxProps: { withinPortal: false } } },
    Table: { defaultProps: { verticalSpacing: 4, horizontalSpacing: 8 } },
    Menu: { defaultProps: { shadow: "md", withinPortal: true, transitionProps: { duration: 0 } } },
  },
});
