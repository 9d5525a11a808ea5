/** The clouds whose metadata services give the machine, container or pod a credential. */
export type MetadataCloud = 'aws' | 'google' | 'azure';

/** Of virtual machines in each cloud. */
export const INSTANCE_METADATA = 'http://169.254.169.254';
/** Of tasks in Amazon ECS (AWS SDKs and Tools Reference Guide, "Container credential provider"). */
export const ECS_CREDENTIALS = 'http://169.254.170.2';

/**
 * The only origins that are ever asked, for the cloud that CLOUD_IDENTITY names. All are link-local addresses, or a unique
 * local one in the case of EKS Pod Identity over IPv6, and no provider may have them.
 */
export const METADATA_ORIGINS: Readonly<Record<MetadataCloud, readonly string[]>> = {
  aws: [INSTANCE_METADATA, ECS_CREDENTIALS, 'http://169.254.170.23', 'http://[fd00:ec2::23]'],
  google: [INSTANCE_METADATA],
  azure: [INSTANCE_METADATA],
};
