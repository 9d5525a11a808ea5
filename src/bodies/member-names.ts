import { NamesByLength } from './folded-names.js';

/** Members of a JSON body that are looked for, most of them for policies. */
export const MEMBER_NAMES = new NamesByLength([
  'model',
  'models',
  'fallbacks',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'generationConfig',
  'generation_config',
  'inferenceConfig',
  'n',
  'best_of',
  'prompt',
  'service_tier',
  'serviceTier',
  'speed',
  'background',
  // The end user and the session.
  'safety_identifier',
  'user',
  'prompt_cache_key',
  'metadata',
]);
