// Bytes as text that another program unpacks: compressed in zlib's format (RFC 1950), and in base 64.
#pragma once

#include <string>
#include <string_view>

namespace dcpcheck {

// `bytes` compressed; zlib.decompress() of Python and inflate() of zlib give them back. At most 0.1 % longer than they are.
std::string zlib_compressed(std::string_view bytes);

// `bytes` in base 64 (RFC 4648), in lines of `width` characters, a multiple of 4, each ended by a newline.
std::string base64_lines(std::string_view bytes, std::size_t width);

}  // namespace dcpcheck
