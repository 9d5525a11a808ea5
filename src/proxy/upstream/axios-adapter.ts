import type { HttpModuleOptions } from '@nestjs/axios';
import type { AxiosAdapter, AxiosInstance, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import type { Exchange } from '../exchange.js';
import type { UpstreamPools } from './upstream-pools.js';

/**
 * Options that make HttpService a thin layer over undici. The exchange is passed as `data`: axios passes a class instance
 * by reference. axios itself adds no headers, follows no redirects, and does not decompress, transform or check a status.
 */
export function upstreamHttpOptions(pools: UpstreamPools): HttpModuleOptions {
  return {
    adapter: async (config: InternalAxiosRequestConfig): Promise<AxiosResponse<null>> => {
      const exchange = config.data as Exchange;
      await exchange.run(pools.for(exchange.provider.origin));
      return { data: null, status: 0, statusText: '', headers: {}, config };
    },
    transformRequest: [],
    transformResponse: [],
    validateStatus: null,
  };
}

/**
 * Calls the adapter directly while no axios interceptor is registered. Without one, axios only merges headers and defaults
 * that a call does not have, which adds a third to it. With an interceptor, or if the adapter in the instance's defaults
 * was replaced, axios handles the request.
 */
export function useAdapterDirectly(axios: AxiosInstance): void {
  const axiosRequest = axios.request.bind(axios);
  const { request, response } = axios.interceptors;
  const { adapter } = axios.defaults;
  axios.request = ((config: InternalAxiosRequestConfig) =>
    request.handlers?.length || response.handlers?.length || axios.defaults.adapter !== adapter
      ? axiosRequest(config)
      : (adapter as AxiosAdapter)(config)) as AxiosInstance['request'];
}
