import { z } from 'zod';
import { oneOf } from '../admin/fields.schema.js';
import { containsKeyFormat } from '../platform/api-key.js';

/** Of the columns in Postgres. */
export const STREAM_USAGE_COMMENT =
  'Streams without usage: as_sent: they are forwarded; require: rejected; ask: stream_options is added.';

/**
 * What happens to streams of chat completions that would not report their usage:
 * - `as_sent`: they are forwarded as they are
 * - `require`: they are rejected
 * - `ask`: `stream_options` is added to the request body
 */
export type StreamUsage = 'as_sent' | 'require' | 'ask';
export const STREAM_USAGES = ['as_sent', 'require', 'ask'] as const satisfies readonly StreamUsage[];

/** The rules that teams and keys have alike. A call must satisfy those of its key and those of its team. */
export interface ModelRules {
  /** Patterns of model names; null allows all. */
  models: readonly string[] | null;
  stream_usage: StreamUsage;
}

const MAX_PATTERNS = 100;
const MAX_PATTERN = 128;
const MODELS = 'must be a list of model names, in which * stands for any characters; null allows all models';
const MODELS_ABOUT =
  'Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.';
const STREAM_USAGE_ABOUT =
  'Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.';

/** Patterns of model names. */
export const modelPatterns = z
  .array(
    z
      .string(MODELS)
      .regex(
        new RegExp(String.raw`^[\x21-\x7e]{1,${MAX_PATTERN}}$`),
        `must be 1 to ${MAX_PATTERN} visible ASCII characters`,
      )
      .refine((pattern) => !containsKeyFormat(pattern), 'must not contain a gateway key'),
    MODELS,
  )
  .max(MAX_PATTERNS, `must not have more than ${MAX_PATTERNS} entries`)
  .transform((patterns) => [...new Set(patterns)]);

const about = {
  models: { description: MODELS_ABOUT, example: ['gpt-5*', 'claude-haiku-*'] },
  stream_usage: { description: STREAM_USAGE_ABOUT },
};

/** Members of a view. */
export const modelRulesView = {
  models: z.array(z.string()).nullable().meta(about.models),
  stream_usage: z.enum(STREAM_USAGES).meta(about.stream_usage),
};

/** Members of a new team or key. */
export const newModelRules = {
  models: modelPatterns.nullish().default(null).meta(about.models),
  stream_usage: oneOf(STREAM_USAGES).default('as_sent').meta(about.stream_usage),
};

/** Members of a change. */
export const modelRulesChange = {
  models: modelPatterns.nullable().optional().meta(about.models),
  stream_usage: oneOf(STREAM_USAGES).optional().meta(about.stream_usage),
};
