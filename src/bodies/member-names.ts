import { NamesByLength } from './folded-names.js';
import { OF_OUTSIDE, OF_TOOLS } from './outside-input.js';

/** Members of a JSON body that name the end user and the session. */
const OF_END_USER = ['safety_identifier', 'user', 'prompt_cache_key', 'metadata'];

/** Members of a JSON body that limit its output, see output-limits.ts. */
export const OF_OUTPUT = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'generationConfig',
  'generation_config',
  'inferenceConfig',
  'n',
  'best_of',
  'prompt',
];

/** Members that say how many units with a price a request asks for, see request-units.ts. */
const OF_UNITS = ['input', 'size', 'quality'];

/** Members of a JSON body that the row of a call is filled from. */
const OF_ROW = ['model', 'background', ...OF_END_USER, ...OF_OUTPUT, ...OF_OUTSIDE, ...OF_TOOLS];
export const ROW_NAMES = new NamesByLength(OF_ROW);
export const ROW_NAMES_AND_UNITS = new NamesByLength([...OF_ROW, ...OF_UNITS]);

/** These, and those that policies read. */
const ALL = [
  'model',
  'background',
  ...OF_END_USER,
  'models',
  'fallbacks',
  'stream',
  'stream_options',
  ...OF_OUTPUT,
  ...OF_OUTSIDE,
  ...OF_TOOLS,
  'service_tier',
  'serviceTier',
  'speed',
];
export const MEMBER_NAMES = new NamesByLength(ALL);
export const MEMBER_NAMES_AND_UNITS = new NamesByLength([...ALL, ...OF_UNITS]);
