import { NamesByLength } from './folded-names.js';

/** Members that policies look for in a JSON body. */
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
]);
