import { GATEWAY_ERROR_CODES, GatewayError, type GatewayErrorCode } from './errors/gateway-error.js';

/** The former names. */
export const REFUSAL_CODES = GATEWAY_ERROR_CODES;
export type RefusalCode = GatewayErrorCode;
export const Refusal = GatewayError;
export type Refusal = GatewayError;
