import { z } from 'zod';
import { PROVIDER_NAME } from '../providers/provider-name.js';

const PROVIDERS = 'must be a list of one or more names of providers or routes; null for all';
const DEFAULT = 'must be the name of a provider or a route; null for the default of all teams';

const about = {
  providers: {
    description:
      'Names of the providers and routes that keys of the team may use; lists of its keys can only narrow it. Null: those of ' +
      'the team, and all that belong to no team.',
    example: ['openai-search'],
  },
  default_provider: {
    description:
      'Provider or route that calls to `/v1` of the team go to, unless their key may use only one. Null: the default of all teams.',
    example: 'openai-search',
  },
};

/** A list of names of providers and routes. */
export const providerNames = z
  .array(z.string(PROVIDERS).regex(PROVIDER_NAME, PROVIDERS), PROVIDERS)
  .min(1, PROVIDERS)
  .max(100, 'must not name more than 100 providers')
  .transform((names) => [...new Set(names)]);

const defaultProvider = z.string(DEFAULT).regex(PROVIDER_NAME, DEFAULT);

/** Members of a view. */
export const providerRulesView = {
  providers: z.array(z.string()).nullable().meta(about.providers),
  default_provider: z.string().nullable().meta(about.default_provider),
};

/** Members of a new team or of a change. */
export const providerRulesChange = {
  providers: providerNames.nullable().optional().meta(about.providers),
  default_provider: defaultProvider.nullable().optional().meta(about.default_provider),
};
