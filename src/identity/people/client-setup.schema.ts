import { z } from 'zod';

/** `GET /admin/v1/sign-ins/setup` */
export const clientSetupSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .meta({ description: 'Whether people can sign in from clients: `SIGN_IN`.', example: true }),
    gateway_url: z.string().nullable().meta({
      description: 'Where clients call: `GATEWAY_URL`, else `PUBLIC_URL`; null: neither is set.',
      example: 'https://gateway.example.com',
    }),
    certificate_sha256: z.string().nullable().meta({
      description:
        'SHA-256 of the certificate there now, to compare with what a client shows; null over plain HTTP, or if it could not be verified.',
      example: 'AB:CD:…',
    }),
    certificate_error: z.string().nullable().meta({
      description:
        'Why the gateway could not verify the certificate; null if it could. `NODE_EXTRA_CA_CERTS` names authorities of your own.',
      example: 'unable to get local issuer certificate',
    }),
  })
  .meta({ id: 'ClientSetup' });
export type ClientSetup = z.output<typeof clientSetupSchema>;
