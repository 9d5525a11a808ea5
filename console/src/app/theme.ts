import {
  createTheme,
  type CSSVariablesResolver,
  type MantineColorsTuple,
  Table,
  Tooltip,
} from '@mantine/core';

/**
 * The colours of series in charts. Chosen so that any two, and the one of all others, differ for readers with deuteranopia,
 * protanopia and tritanopia too (CIE76 of 20 at least, simulated after Machado 2009); neighbours differ in lightness.
 */
export const SERIES_COLORS = [
  'indigo.7',
  'yellow.6',
  'grape.9',
  'green.5',
  'orange.8',
  'indigo.3',
  'pink.9',
  'cyan.8',
] as const;
/** The colour of "all other groups" in charts. */
export const OTHER_COLOR = 'gray.5';

const indigo: MantineColorsTuple = [
  '#edf2ff',
  '#dbe4ff',
  '#bac8ff',
  '#91a7ff',
  '#748ffc',
  '#5c7cfa',
  '#4c6ef5',
  '#4263eb',
  '#3b5bdb',
  '#364fc7',
];

/** A long name takes several lines beside the button that closes. */
const DIALOG = {
  header: { gap: 'var(--mantine-spacing-sm)' },
  title: { fontWeight: 650, overflowWrap: 'anywhere', minWidth: 0 },
} as const;

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 8, dark: 7 },
  colors: { indigo },
  // Text on a filled button is black or white, whichever has the greater contrast.
  autoContrast: true,
  luminanceThreshold: 0.35,
  defaultRadius: 'md',
  // Of the browser's setting for people whom motion makes ill. main.css has the transitions of styles.
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace',
  headings: {
    sizes: { h1: { fontSize: '1.5rem', lineHeight: '1.3' }, h2: { fontSize: '1.05rem', lineHeight: '1.4' } },
  },
  components: {
    // Not by Drawer.extend: the first page loads neither.
    Drawer: { styles: DIALOG },
    Modal: { styles: DIALOG },
    // Beside the header of the page, another one would be no landmark.
    DrawerHeader: { defaultProps: { role: 'presentation' } },
    ModalHeader: { defaultProps: { role: 'presentation' } },
    // The red of weekends and the grey of other months have too little contrast.
    DatePicker: { defaultProps: { hideOutsideDates: true, weekendDays: [] } },
    DatePickerInput: { defaultProps: { hideOutsideDates: true, weekendDays: [] } },
    Table: Table.extend({ defaultProps: { verticalSpacing: 'xs', horizontalSpacing: 'sm' } }),
    Tooltip: Tooltip.extend({
      defaultProps: { withArrow: true, events: { hover: true, focus: true, touch: true } },
    }),
  },
});

/** Mantine's own dimmed, placeholder and error colours have too little contrast for WCAG 2.2 AA (4.5 to 1). */
export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#495057',
    '--mantine-color-placeholder': '#5c636a',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-anchor': '#364fc7',
    '--mantine-color-body': '#ffffff',
    '--postern-surface': '#f8f9fa',
    '--postern-good': '#1a632c',
    '--postern-warning': '#7d5200',
    '--postern-bad': '#b02525',
  },
  dark: {
    '--mantine-color-dimmed': '#b4b9bf',
    '--mantine-color-placeholder': '#a0a6ad',
    '--mantine-color-error': '#ff8787',
    '--mantine-color-anchor': '#91a7ff',
    '--postern-surface': '#1f1f1f',
    '--postern-good': '#69db7c',
    '--postern-warning': '#ffd43b',
    '--postern-bad': '#ffa8a8',
  },
});
