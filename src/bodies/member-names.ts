import { NamesByLength } from './folded-names.js';

/** Members of a JSON body that name the end user and the session. */
const OF_END_USER = ['safety_identifier', 'user', 'prompt_cache_key', 'metadata'];

/** Members of a JSON body that limit its output, see output-limits.ts. */
const OF_OUTPUT = [
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

/** Members of a JSON body that the row of a call is filled from. */
export const ROW_NAMES = new NamesByLength(['model', ...OF_END_USER, ...OF_OUTPUT]);

/** These, and those that policies read. */
export const MEMBER_NAMES = new NamesByLength([
  'model',
  ...OF_END_USER,
  'models',
  'fallbacks',
  'stream',
  'stream_options',
  ...OF_OUTPUT,
  'service_tier',
  'serviceTier',
  'speed',
  'background',
]);
