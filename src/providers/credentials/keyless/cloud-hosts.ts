/**
 * A credential of the workload itself goes only to hosts at which nobody but the cloud can read it: whoever may add
 * providers could otherwise receive it at a host of their own. Hosts of a cloud that run a customer's code are left out,
 * such as those of API Management (`azure-api.net`), API Gateway, load balancers and machines (`*.amazonaws.com` with more
 * labels).
 */

const AWS_REGION = String.raw`[a-z]{2}(?:-[a-z]+)+-\d`;

/** Origins of providers, by cloud. */
export const PROVIDER_ORIGINS = {
  openai: {
    pattern: /^https:\/\/(?:[a-z]{2}\.)?api\.openai\.com$/,
    form: 'https://api.openai.com',
  },
  anthropic: {
    pattern: /^https:\/\/api\.anthropic\.com$/,
    form: 'https://api.anthropic.com',
  },
  // Endpoints of a service in a region (AWS General Reference, "AWS service endpoints").
  aws: {
    pattern: new RegExp(
      String.raw`^https://[a-z0-9-]+\.${AWS_REGION}\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$`,
    ),
    form: 'https://<service>.<region>.amazonaws.com',
  },
  google: {
    pattern: /^https:\/\/(?:[a-z0-9-]+\.)+googleapis\.com$/,
    form: 'https://<service>.googleapis.com',
  },
  // Of a resource, in the public cloud and in those of governments and of China.
  azure: {
    pattern: /^https:\/\/[a-z0-9-]+\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)$/,
    form: 'https://<resource>.openai.azure.com',
  },
} as const;

/** Origins of token endpoints that an identity token may be sent to. */
export const TOKEN_ORIGINS = {
  openai: { pattern: /^https:\/\/auth\.openai\.com$/, form: 'https://auth.openai.com' },
  aws: {
    pattern: new RegExp(
      String.raw`^https://sts(?:-fips)?(?:\.${AWS_REGION})?\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$`,
    ),
    form: 'https://sts.<region>.amazonaws.com',
  },
  // With a name after `sts-`, that of a Private Service Connect endpoint.
  google: {
    pattern: /^https:\/\/sts(?:-[a-z0-9-]+\.p)?\.googleapis\.com$/,
    form: 'https://sts.googleapis.com',
  },
  entra: {
    pattern: /^https:\/\/login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn)$/,
    form: 'https://login.microsoftonline.com',
  },
} as const;

export type Cloud = keyof typeof PROVIDER_ORIGINS;

/** What is wrong with the origin of a provider that a credential of this cloud would be sent to; null: nothing. */
export function providerOriginProblem(cloud: Cloud, origin: string): string | null {
  const { pattern, form } = PROVIDER_ORIGINS[cloud];
  return pattern.test(origin)
    ? null
    : `must be at a host of the cloud itself, such as ${form}, because the credential of this workload is sent there`;
}
