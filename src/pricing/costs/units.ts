/** Units whose price older versions know: they stand in the column `extra` of a price. */
const FIRST_UNITS = [
  'reasoning_tokens',
  'input_audio_tokens',
  'cached_audio_tokens',
  'output_audio_tokens',
  'input_image_tokens',
  'cached_image_tokens',
  'output_image_tokens',
  'web_searches',
  'search_units',
] as const;

/** What a provider reports of every call that is billed by it. If a price names one, a call without it has no cost. */
const MEASURED_UNITS = [
  'input_audio_seconds',
  'output_audio_seconds',
  'input_characters',
  'pages',
  'annotated_pages',
  'images',
  'video_seconds',
] as const;

/** Units with a price of their own besides the five kinds of tokens. Tokens: USD per million; else USD per thousand. */
export const EXTRA_UNITS = [...FIRST_UNITS, 'file_searches', 'code_sessions', ...MEASURED_UNITS] as const;
export type ExtraUnit = (typeof EXTRA_UNITS)[number];
export type ExtraPrices = Partial<Record<ExtraUnit, string | null>>;

const FIRST = new Set<string>(FIRST_UNITS);
const MEASURED = new Set<string>(MEASURED_UNITS);

/** True for units whose price is for a thousand of them; the others are tokens. */
export function isCounted(unit: string): boolean {
  return !unit.endsWith('_tokens');
}

/** True for units that versions without the column `units` take for output tokens. */
export function isNewUnit(unit: string): boolean {
  return !FIRST.has(unit);
}

/** True for units of which no count means that it is unknown; of the others, such as searches, it means none. */
export function isMeasured(unit: string): boolean {
  return MEASURED.has(unit);
}

/**
 * The counted units that what is known of a request bounds, see MostUnits; of the rest, such as the seconds of a recording,
 * it does not say how many there will be.
 */
export const BOUNDED_UNITS = ['input_characters', 'images'] as const;

/** The most units that a call can have. */
export type MostUnits = Readonly<Record<(typeof BOUNDED_UNITS)[number], number>>;
