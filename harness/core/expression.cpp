#include "harness/core/expression.hpp"

#include <cctype>
#include <charconv>
#include <functional>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"

namespace dcpcheck {

struct Expression::Node {
  enum class Kind : std::uint8_t { constant, name, unary, binary, conditional };
  Kind kind = Kind::constant;
  Term constant;
  std::string symbol;  // a name, or an operator: "+", "&&", "min", …
  std::vector<std::shared_ptr<const Node>> of;
};

namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

NodePtr node(Node::Kind kind, std::string symbol, std::vector<NodePtr> of) {
  auto made = std::make_shared<Node>();
  made->kind = kind;
  made->symbol = std::move(symbol);
  made->of = std::move(of);
  return made;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NodePtr whole() {
    if (text_.size() > 4096) throw InputError("an expression is longer than 4096 characters");
    NodePtr root = conditional();
    skip();
    if (at_ != text_.size()) fail("an operator or the end");
    return root;
  }

 private:
  // A bound on nesting, so that no file can exhaust the stack.
  struct Depth {
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > 64) parser_.fail("fewer than 64 nested terms");
    }
    ~Depth() { --parser_.depth_; }
    Parser& parser_;
  };

  [[noreturn]] void fail(const std::string& expected) const {
    throw InputError("expression \"" + std::string(text_) + "\", column " + std::to_string(at_ + 1) + ": expected " + expected);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }

  NodePtr conditional() {
    const Depth depth(*this);
    NodePtr condition = left_to_right({"||"}, [this] { return conjunction(); });
    if (!accept("?")) return condition;
    NodePtr yes = conditional();
    expect(":");
    NodePtr no = conditional();
    return node(Node::Kind::conditional, "?", {condition, yes, no});
  }
  NodePtr conjunction() {
    return left_to_right({"&&"}, [this] { return comparison(); });
  }
  NodePtr comparison() {
    NodePtr left = sum();
    for (const char* symbol : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (accept(symbol)) return node(Node::Kind::binary, symbol, {left, sum()});
    }
    return left;
  }
  NodePtr sum() {
    return left_to_right({"+", "-"}, [this] { return left_to_right({"*", "/", "%"}, [this] { return unary(); }); });
  }
  NodePtr left_to_right(const std::vector<const char*>& symbols, const std::function<NodePtr()>& operand) {
    NodePtr left = operand();
    for (bool more = true; more;) {
      more = false;
      for (const char* symbol : symbols) {
        if (!accept(symbol)) continue;
        left = node(Node::Kind::binary, symbol, {left, operand()});
        more = true;
        break;
      }
    }
    return left;
  }
  NodePtr unary() {
    const Depth depth(*this);
    skip();
    // "!=" never starts an operand, so "!" alone is meant here.
    if (accept("!")) return node(Node::Kind::unary, "!", {unary()});
    if (accept("-")) return node(Node::Kind::unary, "-", {unary()});
    return atom();
  }
  NodePtr atom() {
    skip();
    if (accept("(")) {
      NodePtr inside = conditional();
      expect(")");
      return inside;
    }
    if (at_ >= text_.size()) fail("a number, a name or a 'string'");
    const char first = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(first))) return number();
    if (first == '\'') return quoted();
    std::string name = word();
    for (const char* function : {"min", "max", "ceil_div"}) {
      if (name != function || !accept("(")) continue;
      NodePtr left = conditional();
      expect(",");
      NodePtr right = conditional();
      expect(")");
      return node(Node::Kind::binary, name, {left, right});
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      name += '.';
      name += word();
    }
    return node(Node::Kind::name, name, {});
  }
  NodePtr number() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("an integer below 2^63");
    at_ += static_cast<std::size_t>(end - begin);
    auto made = std::make_shared<Node>();
    made->constant = value;
    return made;
  }
  NodePtr quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) fail("a closing '");
    auto made = std::make_shared<Node>();
    made->constant = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return made;
  }
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == begin) fail("a number, a name or a 'string'");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

void collect_names(const Node& node, std::set<std::string>& names) {
  if (node.kind == Node::Kind::name) names.insert(node.symbol);
  for (const NodePtr& part : node.of) collect_names(*part, names);
}

struct Evaluator {
  const std::string& text;
  const Environment& environment;

  [[noreturn]] void fail(const std::string& why) const { throw InputError("expression \"" + text + "\": " + why); }

  std::int64_t integer(const Node& node) const {
    const Term term = evaluate(node);
    if (const auto* value = std::get_if<std::int64_t>(&term)) return *value;
    fail("'" + std::get<std::string>(term) + "' stands where a number is needed");
  }

  Term evaluate(const Node& node) const {
    switch (node.kind) {
      case Node::Kind::constant: return node.constant;
      case Node::Kind::name: {
        const auto found = environment.find(node.symbol);
        if (found == environment.end()) fail("nothing is called '" + node.symbol + "'");
        return found->second;
      }
      case Node::Kind::unary: {
        const std::int64_t value = integer(*node.of[0]);
        if (node.symbol == "!") return std::int64_t{value == 0};
        return checked("-", 0, value);
      }
      case Node::Kind::conditional: return evaluate(*node.of[integer(*node.of[0]) != 0 ? 1 : 2]);
      case Node::Kind::binary: return binary(node);
    }
    fail("cannot be evaluated");
  }

  Term binary(const Node& node) const {
    const std::string& symbol = node.symbol;
    if (symbol == "&&") return std::int64_t{integer(*node.of[0]) != 0 && integer(*node.of[1]) != 0};
    if (symbol == "||") return std::int64_t{integer(*node.of[0]) != 0 || integer(*node.of[1]) != 0};
    if (symbol == "==" || symbol == "!=") {
      const Term left = evaluate(*node.of[0]);
      const Term right = evaluate(*node.of[1]);
      if (left.index() != right.index()) fail("a number is compared with a string");
      return std::int64_t{(left == right) == (symbol == "==")};
    }
    return checked(symbol, integer(*node.of[0]), integer(*node.of[1]));
  }

  std::int64_t checked(const std::string& symbol, std::int64_t a, std::int64_t b) const {
    std::int64_t out = 0;
    if (symbol == "<") return a < b;
    if (symbol == "<=") return a <= b;
    if (symbol == ">") return a > b;
    if (symbol == ">=") return a >= b;
    if (symbol == "min") return a < b ? a : b;
    if (symbol == "max") return a < b ? b : a;
    if (symbol == "+"   ? __builtin_add_overflow(a, b, &out)
        : symbol == "-" ? __builtin_sub_overflow(a, b, &out)
                        : symbol == "*" && __builtin_mul_overflow(a, b, &out)) {
      fail("overflows 64 bits");
    }
    if (symbol == "/" || symbol == "%" || symbol == "ceil_div") {
      if (b == 0) fail("divides by zero");
      if (a == INT64_MIN && b == -1) fail("overflows 64 bits");
      out = symbol == "%" ? a % b : a / b;
      if (symbol == "ceil_div" && a % b != 0 && (a < 0) == (b < 0)) ++out;
    }
    return out;
  }
};

}  // namespace

Expression::Expression(std::string_view text) : text_(text), root_(Parser(text).whole()) {}

Term Expression::evaluate(const Environment& environment) const {
  if (!root_) throw InputError("an empty expression has no value");
  return Evaluator{text_, environment}.evaluate(*root_);
}

std::int64_t Expression::integer(const Environment& environment) const {
  if (!root_) throw InputError("an empty expression has no value");
  return Evaluator{text_, environment}.integer(*root_);
}

std::set<std::string> Expression::names() const {
  std::set<std::string> names;
  if (root_) collect_names(*root_, names);
  return names;
}

}  // namespace dcpcheck
