import { z } from 'zod';

/** `GET /admin/v1/oidc` */
export const oidcStateSchema = z
  .strictObject({
    enabled: z.boolean().meta({
      description: 'True if `GET /admin/v1/oidc/start` signs in by single sign-on.',
      example: true,
    }),
  })
  .meta({ id: 'SingleSignOn' });
export type OidcState = z.output<typeof oidcStateSchema>;

export const returnTo = z
  .string()
  .optional()
  .meta({ description: 'Page of the console to go to after signing in.', example: '/console/usage' });
